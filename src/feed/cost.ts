/**
 * What each call of the Market Data Read API needs and costs: the scope the token must carry, and the units that one
 * call takes from the account's daily budget. `{instrument}` stands for a numeric id, an exchange symbol or a slug.
 */
export const endpoints = [
  { method: 'GET', path: '/api/v1/instruments', scope: 'api:instruments', units: 1 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}', scope: 'api:instruments', units: 2 },
  { method: 'GET', path: '/api/v1/board', scope: 'api:instruments', units: 1 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}/prices', scope: 'api:prices', units: 2 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}/indicators', scope: 'api:indicators', units: 5 },
  { method: 'GET', path: '/api/v1/screener/fields', scope: 'api:screener', units: 1 },
  { method: 'GET', path: '/api/v1/screens', scope: 'api:screener', units: 1 },
  { method: 'POST', path: '/api/v1/screener/run', scope: 'api:screener', units: 25 },
  { method: 'GET', path: '/api/v1/filings', scope: 'api:filings', units: 1 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}/statements', scope: 'api:filings', units: 2 },
  { method: 'GET', path: '/api/v1/valuations', scope: 'api:valuations', units: 1 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}/valuations', scope: 'api:valuations', units: 2 },
  { method: 'GET', path: '/api/v1/macro', scope: 'api:macro', units: 1 },
  { method: 'GET', path: '/api/v1/macro/series', scope: 'api:macro', units: 1 },
  { method: 'GET', path: '/api/v1/instruments/{instrument}/ownership', scope: 'api:ownership', units: 5 },
  { method: 'GET', path: '/api/v1/alerts', scope: 'api:alerts', units: 1 },
  { method: 'GET', path: '/api/v1/alerts/deliveries', scope: 'api:alerts', units: 1 },
] as const satisfies readonly Endpoint[]

export interface Endpoint {
  readonly method: 'GET' | 'POST'
  readonly path: `/api/v1/${string}`
  readonly scope: `api:${string}`
  readonly units: number
}

export type EndpointPath = (typeof endpoints)[number]['path']
export type Scope = (typeof endpoints)[number]['scope']

/** Units that one call of `path` costs. */
export function unitsOf(path: EndpointPath): number {
  // The table's type makes every path one of its rows.
  return endpoints.find((each) => each.path === path)?.units ?? 0
}

/**
 * The document of the Market Data Read API as data: its tables, one entry a row, with the number of the part that they
 * stand in. Nothing here comes from the code of the bridge: client and sandbox are both held against it.
 */

interface DocumentedParameter {
  readonly name: string
  readonly type: 'integer' | 'string' | 'boolean' | 'strings'
  readonly required?: true
  readonly of?: readonly string[]
  readonly min?: number
  readonly max?: number
  readonly itemsMax?: number
}

export interface DocumentedEndpoint {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly scope: string
  readonly cost: number
  readonly answer: 'page' | 'record'
  readonly query: readonly DocumentedParameter[]
  /** The record (part 2) that `data` is, or that its rows are, or that lies in `meta`. */
  readonly data?: keyof typeof records
  readonly meta?: keyof typeof records
}

/** Part 8, and the defaults that part 4 names. */
export const limits = {
  requestsPerMinute: 240,
  rowsPerPage: 100,
  pricesDays: { min: 20, max: 365, default: 120 },
  macroKeys: 5,
  macroDays: 3_650,
  conditions: 24,
} as const

const venues = ['bourse', 'fara', 'fara_base']
const page = { name: 'page', type: 'integer', min: 1 } as const
const instrument = '/api/v1/instruments/{instrument}'

/** 4.1, with the parameters of 4.2 to 4.17. */
export const documented: readonly DocumentedEndpoint[] = [
  {
    ...row('GET', '/api/v1/instruments', 'api:instruments', 1, 'page'),
    query: [
      { name: 'filter[market]', type: 'string' },
      { name: 'filter[board]', type: 'string', of: venues },
      { name: 'filter[q]', type: 'string' },
      { name: 'sort', type: 'string' },
      page,
    ],
  },
  row('GET', instrument, 'api:instruments', 2, 'record'),
  {
    ...row('GET', '/api/v1/board', 'api:instruments', 1, 'page'),
    query: [
      { name: 'group', type: 'string', of: ['all', 'equity', 'fund', 'fixed_income'] },
      { name: 'exchange', type: 'string', of: venues },
      { name: 'industry', type: 'string' },
      { name: 'search', type: 'string' },
      { name: 'sort', type: 'string', of: ['value', 'volume', 'change', 'last'] },
      { name: 'direction', type: 'string', of: ['asc', 'desc'] },
      page,
    ],
  },
  {
    ...row('GET', `${instrument}/prices`, 'api:prices', 2, 'record'),
    query: [{ name: 'days', type: 'integer', min: limits.pricesDays.min, max: limits.pricesDays.max }],
    data: 'prices',
  },
  { ...row('GET', `${instrument}/indicators`, 'api:indicators', 5, 'record'), data: 'indicators' },
  { ...row('GET', '/api/v1/screener/fields', 'api:screener', 1, 'record'), data: 'screener field' },
  { ...row('GET', '/api/v1/screens', 'api:screener', 1, 'record'), meta: 'screens meta' },
  { ...row('POST', '/api/v1/screener/run', 'api:screener', 25, 'record'), data: 'run result' },
  {
    ...row('GET', '/api/v1/filings', 'api:filings', 1, 'page'),
    query: [
      { name: 'symbol', type: 'string' },
      { name: 'since', type: 'string' },
      { name: 'parsedOnly', type: 'boolean' },
      page,
    ],
  },
  {
    ...row('GET', `${instrument}/statements`, 'api:filings', 2, 'record'),
    query: [{ name: 'letter', type: 'integer' }],
    data: 'statements',
  },
  row('GET', '/api/v1/valuations', 'api:valuations', 1, 'record'),
  row('GET', `${instrument}/valuations`, 'api:valuations', 2, 'record'),
  { ...row('GET', '/api/v1/macro', 'api:macro', 1, 'record'), data: 'macro entry' },
  {
    ...row('GET', '/api/v1/macro/series', 'api:macro', 1, 'record'),
    query: [
      { name: 'keys[]', type: 'strings', itemsMax: limits.macroKeys, required: true },
      { name: 'days', type: 'integer', max: limits.macroDays },
    ],
  },
  { ...row('GET', `${instrument}/ownership`, 'api:ownership', 5, 'record'), data: 'ownership' },
  { ...row('GET', '/api/v1/alerts', 'api:alerts', 1, 'page'), query: [page], data: 'alert rule' },
  {
    ...row('GET', '/api/v1/alerts/deliveries', 'api:alerts', 1, 'page'),
    query: [page],
    data: 'alert delivery',
  },
]

/** 4.9: what may stand in the body of a screener run; no property is required. */
export const runBody = ['screenId', 'screen', 'scope', 'fields', 'sortBy', 'sortDescending'] as const
export const matches = ['all', 'any'] as const
export const scopeKeys = ['group', 'exchange', 'industry'] as const

/** 5.3 */
export const scopes = [
  'api:instruments',
  'api:prices',
  'api:indicators',
  'api:screener',
  'api:filings',
  'api:valuations',
  'api:macro',
  'api:ownership',
  'api:alerts',
] as const

/** Part 7. */
export const errors = [
  { code: 'unauthenticated', status: 401 },
  { code: 'scope_required', status: 403 },
  { code: 'plan_required', status: 403 },
  { code: 'rate_limited', status: 429 },
  { code: 'not_found', status: 404 },
  { code: 'invalid_request', status: 422 },
  { code: 'server_error', status: 500 },
] as const

/** 2.1: all four are integers and present. */
export const pageMeta = ['page', 'perPage', 'total', 'lastPage'] as const

type Scalar = 'integer' | 'number' | 'string' | 'boolean' | 'strings'
/** `or null`: may be null or absent. `null`: present, and maybe null. A name in brackets is a list of such records. */
export type FieldType = Scalar | `${Scalar} or null` | `${Scalar} null` | `[${string}]` | `{${string}}`

/** Parts 2.5 to 2.17, where fields are shown. */
export const records = {
  prices: { unit: 'string null' },
  indicators: { seriesHash: 'string' },
  'screener field': {
    ...{
      key: 'string',
      group: 'string',
      format: 'string',
      eager: 'boolean',
      label: 'string',
      hint: 'string',
    },
  },
  'screens meta': { kept: 'integer', limit: 'integer' },
  'run result': { matched: 'integer', shown: 'integer', rowCap: 'integer null' },
  statements: { quota: '{quota}' },
  quota: { total: 'integer', shown: 'integer' },
  'macro entry': { key: 'string', freshAt: 'string or null', stale: 'boolean' },
  ownership: {
    summary: '{summary}',
    freeFloatPercent: 'number or null',
    floatGapPoints: 'number or null',
    history: '[history entry]',
    tree: '[tree node]',
    chains: 'integer',
    treeTruncated: 'boolean',
    lookThrough: '[look-through entry]',
    interlocks: '[interlock entry]',
    conflicts: '[conflict entry]',
    profitImpact: '[profit-impact entry]',
  },
  summary: {
    asOf: 'string or null',
    holders: '[holder]',
    registeredPercent: 'number',
    strategicPercent: 'number',
    board: '[board member]',
  },
  holder: {
    entityId: 'integer',
    name: 'string',
    kind: 'string',
    percent: 'number or null',
    shareCount: 'integer or null',
    asOf: 'string',
    listedSymbol: 'string or null',
    listedSlug: 'string or null',
  },
  'board member': {
    entityId: 'integer',
    name: 'string',
    role: 'string',
    isExecutive: 'boolean or null',
    representative: 'string or null',
    termStart: 'string',
    termEndedAt: 'string or null',
    sourceUrl: 'string or null',
  },
  'history entry': {
    entityId: 'integer',
    name: 'string',
    asOf: 'string',
    percent: 'number or null',
    previousPercent: 'number or null',
    deltaPoints: 'number or null',
    isEntry: 'boolean',
    isExit: 'boolean',
  },
  'tree node': {
    entityId: 'integer',
    name: 'string',
    percent: 'number or null',
    effectivePercent: 'number or null',
    end: 'string or null',
    listedSymbol: 'string or null',
    listedSlug: 'string or null',
    children: '[tree node]',
  },
  'look-through entry': {
    entityId: 'integer',
    name: 'string',
    kind: 'string',
    effectivePercent: 'number',
    paths: 'integer',
    truncated: 'boolean',
    listedSymbol: 'string or null',
    listedSlug: 'string or null',
  },
  'interlock entry': { symbol: 'string', slug: 'string or null', shared: 'strings' },
  'conflict entry': {
    entityId: 'integer',
    name: 'string',
    parentSymbol: 'string',
    parentSlug: 'string or null',
    percentOfParent: 'number or null',
    parentPercentOfInstrument: 'number or null',
  },
  'profit-impact entry': {
    symbol: 'string',
    slug: 'string or null',
    name: 'string',
    percent: 'number',
    netProfit: 'number or null',
    attributable: 'number or null',
    periodEnd: 'string or null',
    basis: 'string or null',
    sourceUrl: 'string or null',
  },
  'alert rule': {
    id: 'integer',
    kind: 'string',
    name: 'string or null',
    instrumentId: 'integer or null',
    symbol: 'string or null',
    slug: 'string or null',
    screenId: 'integer or null',
    screen: 'string or null',
    config: 'strings',
    channels: 'strings',
    isActive: 'boolean',
    disabledReason: 'string or null',
    lastEvaluatedAt: 'string or null',
    nextEvaluationAt: 'string or null',
    lastFiredAt: 'string or null',
    isArmed: 'boolean',
    mine: 'boolean',
    isPrivate: 'boolean',
    owner: 'string or null',
    unit: 'string or null',
  },
  'alert delivery': {
    id: 'integer',
    kind: 'string',
    symbol: 'string or null',
    slug: 'string or null',
    payload: 'strings',
    headline: 'string',
    url: 'string',
    why: 'string or null',
    ruleIds: 'strings',
    firedAt: 'string',
    notifiedAt: 'string or null',
    channels: 'strings',
    isRead: 'boolean',
  },
} as const satisfies Record<string, Record<string, FieldType>>

export type RecordName = keyof typeof records

function row(
  method: 'GET' | 'POST',
  path: string,
  scope: string,
  cost: number,
  answer: 'page' | 'record',
): DocumentedEndpoint {
  return { method, path, scope, cost, answer, query: [] }
}

/** A record as the document shows it, with every field; trees one level deep. */
export function sampleOf(name: RecordName, depth = 0): Record<string, unknown> {
  const fields: Readonly<Record<string, FieldType>> = records[name]
  return Object.fromEntries(Object.entries(fields).map(([field, type]) => [field, sampleValue(type, depth)]))
}

function sampleValue(type: FieldType, depth: number): unknown {
  const nested = /^[[{](.+)[\]}]$/.exec(type)?.[1] as RecordName | undefined
  if (nested !== undefined) {
    if (type.startsWith('{')) return sampleOf(nested, depth + 1)
    return depth > 2 ? [] : [sampleOf(nested, depth + 1)]
  }
  const samples = { integer: 7, number: 1.5, string: 'متن', boolean: true, strings: ['یک', 'two'] }
  return samples[type.replace(/ .*$/, '') as Scalar]
}

/** One field changed for the worse, and whether the document allows it. */
export function variantsOf(
  name: RecordName,
): { says: string; field: string; value: unknown; allowed: boolean }[] {
  const fields: Readonly<Record<string, FieldType>> = records[name]
  return Object.entries(fields).flatMap(([field, type]) => [
    { says: `${field} absent`, field, value: undefined, allowed: type.endsWith(' or null') },
    { says: `${field} null`, field, value: null, allowed: type.endsWith('null') },
    { says: `${field} of another type`, field, value: { odd: 1 }, allowed: false },
  ])
}

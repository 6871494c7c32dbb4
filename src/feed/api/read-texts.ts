import { type EndpointPath, endpointOf, endpoints } from '../endpoints.ts'
import type { Parameter } from './parameters.ts'

/** Reads calls from texts (a command line, an address) by the table of endpoints. */

/** The endpoint of a path, whose segments may be encoded, with its instrument; undefined where there is none. */
export function matchPath(
  pathname: string,
): { readonly path: EndpointPath; readonly instrument?: string } | undefined {
  const literal = endpoints.find(({ path }) => path === pathname)
  if (literal !== undefined && !literal.path.includes('{')) return { path: literal.path }
  const [, given, rest = ''] = /^\/api\/v1\/instruments\/([^/]+)(\/[^/]+)?$/.exec(pathname) ?? []
  const wanted = `/api/v1/instruments/{instrument}${rest}`
  const found = endpoints.find(({ path }) => path === wanted)
  return given === undefined || found === undefined
    ? undefined
    : { path: found.path, instrument: decoded(given) }
}

/**
 * Names and texts as values: each parameter becomes a value of its kind where the text is one, else it stays the text,
 * which the check then refuses. A parameter that is given several times and is no list becomes one, which the check refuses
 * too.
 */
export function readTexts(
  path: EndpointPath,
  pairs: Iterable<readonly [name: string, text: string]>,
): Record<string, unknown> {
  const query: Readonly<Record<string, Parameter>> = endpointOf(path).query
  const texts = new Map<string, string[]>()
  for (const [name, text] of pairs) texts.set(name, [...(texts.get(name) ?? []), text])
  return Object.fromEntries(
    [...texts].map(([name, given]) => {
      const parameter = Object.hasOwn(query, name) ? query[name] : undefined
      const [first = ''] = given
      if (parameter?.kind === 'texts' || given.length > 1) return [name, given]
      return [name, parameter === undefined ? first : valueOfText(parameter, first)]
    }),
  )
}

function valueOfText({ kind }: Parameter, text: string): unknown {
  if (kind === 'whole' && /^\d{1,16}$/.test(text)) return Number(text)
  if (kind !== 'flag') return text
  return flags.get(text) ?? text
}

const flags: ReadonlyMap<string, boolean | number> = new Map<string, boolean | number>([
  ['true', true],
  ['false', false],
  ['1', 1],
  ['0', 0],
])

/** Returned as it is where it is not encoded: a symbol may contain a percent sign. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

import * as z from 'zod'
import { checkedSecret } from './common-config.ts'

/** `problemOf` adds names that a sink reserves for itself. */
export function headersField(problemOf: (lowerCaseName: string) => string | undefined = () => undefined) {
  return z
    .record(z.string(), checkedSecret(headerValueProblem))
    .superRefine((headers, context) => {
      const named = new Set<string>()
      for (const name of Object.keys(headers)) {
        const lowerCase = name.toLowerCase()
        const again = named.has(lowerCase) ? 'is there already, in other letters' : undefined
        const message = headerNameProblem(name) ?? problemOf(lowerCase) ?? again
        if (message !== undefined) context.addIssue({ code: 'custom', path: [name], message })
        named.add(lowerCase)
      }
    })
    .default({})
}

export function headerValueProblem(value: string): string | undefined {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
    ? undefined
    : 'a header cannot carry line breaks, control characters or letters beyond Latin-1'
}

/** Names that belong to the connection or to the request itself. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function headerNameProblem(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return 'is no valid name of a header'
  if (reservedHeaders.has(name.toLowerCase()))
    return 'this header belongs to the connection or to the request itself and cannot be set'
  return undefined
}

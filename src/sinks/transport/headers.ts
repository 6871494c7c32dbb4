import * as z from 'zod'
import { secretField } from '../../lib/fields.ts'
import type { Secret } from '../../lib/secret.ts'
import { traceparentOf } from '../../telemetry/trace-ids.ts'
import { checkedSecret } from '../common-config.ts'
import { headerValueProblem } from '../headers-config.ts'
import { credentialsIn, hideLogin } from '../secret-url.ts'
import type { Attempt, Parcel } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptHelpers } from './attempt.ts'
import { SinkError } from './fault.ts'

/** The headers and credentials that a config adds to a request, each of them a secret. */
export const authField = z
  .strictObject({
    bearer: checkedSecret(headerValueProblem).optional(),
    basic: z.strictObject({ username: z.string().min(1), password: secretField }).optional(),
  })
  .superRefine((given, context) => {
    if ((given.bearer === undefined) === (given.basic === undefined))
      context.addIssue({ code: 'custom', message: 'expected exactly one of bearer and basic' })
    if (given.basic?.username.includes(':'))
      context.addIssue({ code: 'custom', path: ['basic', 'username'], message: 'must not contain a colon' })
  })

interface RequestCredentials {
  readonly headers?: Readonly<Record<string, Secret>> | undefined
  readonly auth?: z.output<typeof authField> | undefined
}

/** Checks the two fields against each other. */
export function checkAuth({ headers = {}, auth }: RequestCredentials, context: z.RefinementCtx): void {
  const name = Object.keys(headers).find((each) => each.toLowerCase() === 'authorization')
  if (auth === undefined || name === undefined) return
  const message = 'auth says what this header is: leave one of them out'
  context.addIssue({ code: 'custom', path: ['headers', name], message })
}

/** What the config adds, lower case so that nothing is sent twice. */
export function ownHeaders(config: RequestCredentials, helpers: AttemptHelpers): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(config.headers ?? {}))
    headers[name.toLowerCase()] = headerValue(value, helpers)
  const { bearer, basic } = config.auth ?? {}
  if (bearer !== undefined) headers['authorization'] = `Bearer ${headerValue(bearer, helpers)}`
  if (basic !== undefined) {
    const password = helpers.reveal(basic.password)
    hideLogin(basic.username, password, helpers)
    const encoded = Buffer.from(`${basic.username}:${password}`, 'utf8').toString('base64')
    headers['authorization'] = `Basic ${encoded}`
  }
  return headers
}

/** W3C Trace Context, where the config asks for traces. The config's own headers win. */
export function traceHeaders(
  sink: string,
  { traces = false }: SinkTools,
  { alert, requestedAtMs }: Parcel,
  { number, target }: Attempt,
): Record<string, string> {
  return traces ? { traceparent: traceparentOf({ alert, sink, target, number, requestedAtMs }) } : {}
}

/** A file may have changed, so the value is checked again. */
function headerValue(secret: Secret, helpers: AttemptHelpers): string {
  const text = helpers.reveal(secret)
  for (const part of credentialsIn(text)) helpers.hide(part)
  const [, user, password] = /^(.*?):(.*)$/s.exec(basicLogin(text)) ?? []
  if (user !== undefined && password !== undefined) hideLogin(user, password, helpers)
  if (headerValueProblem(text) === undefined) return text
  throw new SinkError('credentials', `the text in ${secret.file ?? 'a header'} cannot be sent as a header`)
}

/** The login in a header that holds one, as `auth.basic` would send it. */
function basicLogin(value: string): string {
  return Buffer.from(/^basic\s+(\S+)/i.exec(value)?.[1] ?? '', 'base64').toString('utf8')
}

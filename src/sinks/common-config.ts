import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import * as z from 'zod'
import { durationWithin, secretField } from '../lib/fields.ts'
import type { Secret } from '../lib/secret.ts'

/** The path of a file; the loader resolves a relative one from the folder of the config. */
const pathField = z.string().min(1).meta({ fieldKind: 'path' })

/**
 * Whether a sink may talk to private, loopback and link-local addresses: never, always (but for those of metadata
 * services), or these CIDRs only.
 */
const allowPrivateNetworksField = z.union([z.boolean(), z.array(z.string()).min(1)]).default(false)

/**
 * What the config of every sink has in common. Each sink spreads `commonSinkFields` into a strict object of its own and
 * overrides the defaults that do not fit it. Durations are milliseconds once parsed.
 */
export const commonSinkFields = {
  timeout: durationWithin(100, 300_000).prefault('10s'),
  concurrency: z.int().min(1).max(200).default(5),
  rateLimit: rateLimitField().optional(),
  retry: z
    .strictObject({
      attempts: z.int().min(1).max(100).default(11),
      initialDelay: durationWithin(100, 3_600_000).prefault('5s'),
      maxDelay: durationWithin(100, 604_800_000).prefault('8h'),
    })
    .prefault({})
    .describe(
      'Pauses grow from initialDelay to maxDelay, jittered: by default about 24 h in all. Retry-After of a receiver is honoured up to 1h.',
    ),
  expireAfter: durationWithin(1_000, 2_592_000_000)
    .optional()
    .describe(
      'An alert that fired longer ago goes to the dead letters as expired. Left out: 24h after the bridge first saw it, or as long as retry takes where that is longer.',
    ),
  allowPrivateNetworks: allowPrivateNetworksField.superRefine((allowed, context) => {
    if (typeof allowed === 'boolean') return
    for (const [index, cidr] of allowed.entries()) {
      if (!isNetwork(cidr))
        context.addIssue({
          code: 'custom',
          path: [index],
          message: 'expected a network such as 10.0.0.0/8 or fd00::/8',
        })
    }
  }),
}

/** All four numbers are required: the library reads `10/8` and `010.0.0.0/8` differently than people do. */
function isNetwork(cidr: string): boolean {
  const [address = '', length = ''] = cidr.split('/')
  return (
    isIP(address) !== 0 && !address.includes('%') && /^(0|[1-9]\d*)$/.test(length) && ipaddr.isValidCIDR(cidr)
  )
}

/** At most `max` attempts in a window of `per` (milliseconds), which begins with its first one; see `SinkSettings`. */
export interface RateLimit {
  readonly max: number
  readonly per: number
}

export function rateLimitField() {
  return z.strictObject({
    max: z.int().min(1).max(100_000),
    per: durationWithin(100, 86_400_000),
  })
}

/** Files in PEM form, read when the sink is built; `serverName` is the name that the certificate must carry. */
export function tlsField() {
  return z
    .strictObject({
      ca: pathField.optional(),
      cert: pathField.optional(),
      key: pathField.optional(),
      serverName: z.string().min(1).optional(),
    })
    .superRefine((tls, context) => {
      if ((tls.cert === undefined) !== (tls.key === undefined))
        context.addIssue({ code: 'custom', message: 'cert and key belong together: give both or neither' })
    })
}

/**
 * A secret whose text must satisfy `problemOf`, which returns what is wrong without quoting the value. Text in a file is
 * read, and checked, only when it is used.
 */
export function checkedSecret(problemOf: (text: string) => string | undefined) {
  const check = (secret: Secret, context: z.RefinementCtx<Secret>) => {
    if (secret.file !== undefined) return
    const message = problemOf(secret.reveal())
    if (message !== undefined) context.addIssue({ code: 'custom', message, input: secret })
  }
  return secretField.superRefine(check).meta({ fieldKind: 'secret' })
}

/** The address of an HTTP proxy; it may carry a user and a password, so it is a secret. */
export const proxyField = checkedSecret((text) => httpUrlProblem(text, { userinfo: true })).describe(
  'An http or https proxy. It resolves the names of receivers, so its own rules decide which networks are allowed: allowPrivateNetworks applies to literal addresses only.',
)

/** The address of a service: its public one, unless an operator runs their own server. */
export function serviceUrlField(publicUrl: string) {
  return z
    .string()
    .superRefine((text, context) => {
      const message = baseUrlProblem(text)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
    .default(publicUrl)
}

function baseUrlProblem(text: string): string | undefined {
  const problem = httpUrlProblem(text, { userinfo: false })
  if (problem !== undefined) return problem
  return /[?#]/.test(text) ? 'expected an address without ? and #' : undefined
}

/** `path` under an address that a `serviceUrlField` accepted. */
export function under(baseUrl: string, path: string): string {
  return `${baseUrl.replace(/\/+$/, '')}${path}`
}

/** Why `text` is no http or https address; never quotes it. */
export function httpUrlProblem(text: string, allow: { userinfo: boolean }): string | undefined {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol))
    return 'expected an address that starts with https:// or http://'
  if (!allow.userinfo && (url.username !== '' || url.password !== ''))
    return 'a user or password does not belong in the address'
  return undefined
}

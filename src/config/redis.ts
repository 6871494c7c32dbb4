import * as z from 'zod'
import { secretField } from '../lib/fields.ts'
import type { Secret } from '../lib/secret.ts'

/** How Redis is reached: one address, sentinels that know it, a cluster, or one that the bridge starts itself. */
export type RedisConfig = z.output<typeof redisSchema>

export const redisSchema = z
  .strictObject({
    url: redisAddress(['redis:', 'rediss:', 'unix:'], 'redis://, rediss://, unix:// or embedded')
      .optional()
      .describe('embedded (the default) starts redis-server with its data in dataDir.'),
    sentinels: z
      .array(z.string().transform(parseHostPort))
      .min(1, 'expected at least one host:port')
      .optional(),
    name: z.string().min(1).optional().describe('What the sentinels call the master.'),
    cluster: z
      .array(redisAddress(['redis:', 'rediss:'], 'redis:// or rediss://'))
      .min(1)
      .optional(),
    username: z.string().min(1).optional(),
    password: secretField.optional(),
    sentinelUsername: z.string().min(1).optional(),
    sentinelPassword: secretField.optional(),
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,60}$/, 'expected at most 60 letters, digits, - and _')
      .default('alert-bridge'),
  })
  .superRefine((given, context) => {
    for (const { key, message } of modeProblems(given))
      context.addIssue({ code: 'custom', path: [key], message })
  })
  .transform((given) => {
    const { url, sentinels, cluster, name, prefix, ...rest } = given
    const access = { username: rest.username, password: rest.password }
    const { sentinelUsername, sentinelPassword } = rest
    if (sentinels !== undefined)
      return {
        mode: 'sentinel' as const,
        prefix,
        sentinels,
        name: name ?? '',
        ...access,
        sentinelUsername,
        sentinelPassword,
      }
    if (cluster !== undefined) return { mode: 'cluster' as const, prefix, nodes: cluster, ...access }
    if (url === undefined || (url.file === undefined && url.reveal() === 'embedded'))
      return { mode: 'embedded' as const, prefix }
    return { mode: 'single' as const, prefix, url, ...access }
  })
  .meta({ show: showRedis })

type Given = Readonly<
  Record<'url' | 'sentinels' | 'name' | 'cluster' | 'sentinelPassword' | 'password', unknown>
>

function modeProblems(given: Partial<Given>): { key: string; message: string }[] {
  const modes = (['url', 'sentinels', 'cluster'] as const).filter((key) => given[key] !== undefined)
  const problems: { key: string; message: string }[] = []
  for (const key of modes.slice(1))
    problems.push({
      key,
      message: `expected one of url, sentinels and cluster, but ${modes[0]} is there too`,
    })
  if (given.sentinels !== undefined && given.name === undefined)
    problems.push({ key: 'name', message: 'expected the name that the sentinels give the master' })
  if (given.sentinels === undefined)
    for (const key of ['name', 'sentinelUsername', 'sentinelPassword'] as const)
      if (given[key as keyof Given] !== undefined)
        problems.push({ key, message: 'only goes with sentinels, and there are none' })
  return problems
}

/** An address may carry a password, so it is a secret as a whole. */
function redisAddress(protocols: readonly string[], words: string) {
  const check = (secret: Secret, context: z.RefinementCtx<Secret>) => {
    if (secret.file !== undefined) return
    const text = secret.reveal()
    if (words.includes('embedded') && text === 'embedded') return
    const url = URL.parse(text)
    const pathMissing = url?.protocol === 'unix:' && url.pathname.length < 2
    if (url !== null && protocols.includes(url.protocol) && !pathMissing) return
    context.addIssue({ code: 'custom', message: `expected an address that starts with ${words}` })
  }
  return secretField.superRefine(check).meta({ fieldKind: 'secret' })
}

function parseHostPort(text: string, context: z.RefinementCtx): { host: string; port: number } {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port }
  context.addIssue({ code: 'custom', message: 'expected host:port, such as 10.0.0.5:26379' })
  return z.NEVER
}

function showRedis(redis: RedisConfig): unknown {
  switch (redis.mode) {
    case 'embedded':
      return { url: 'embedded', prefix: redis.prefix }
    case 'single': {
      const { mode: _, ...rest } = redis
      return rest
    }
    case 'cluster': {
      const { mode: _, nodes, ...rest } = redis
      return { cluster: nodes, ...rest }
    }
    case 'sentinel': {
      const { mode: _, sentinels, ...rest } = redis
      const addresses = sentinels.map(
        ({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`,
      )
      return { sentinels: addresses, ...rest }
    }
  }
}

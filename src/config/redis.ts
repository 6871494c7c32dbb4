import * as z from 'zod'
import { property } from '../alert/json/json.ts'
import { secretField } from '../lib/fields.ts'
import { hostPort } from '../lib/host-port.ts'
import type { Secret } from '../lib/secret.ts'
import { tlsField } from '../sinks/common-config.ts'

/** How Redis is reached: one address, sentinels that return it, a cluster, or a server that the bridge starts itself. */
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
      .superRefine(checkCluster)
      .optional(),
    username: z.string().min(1).optional().describe('Used instead of the user in an address.'),
    password: secretField.optional().describe('Used instead of the password in an address.'),
    sentinelUsername: z.string().min(1).optional(),
    sentinelPassword: secretField.optional(),
    tls: tlsField()
      .optional()
      .describe(
        'PEM files of an authority of your own (ca) and of a client certificate (cert and key), read once at the start. For rediss://; with sentinels it turns TLS on.',
      ),
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,60}$/, 'expected at most 60 letters, digits, - and _')
      .default('alert-bridge'),
  })
  .superRefine(({ tls, url, cluster, sentinels }, context) => {
    const addresses = cluster ?? (url === undefined ? [] : [url])
    // An address in a file is read, and checked, at the start.
    const isTls = (address: Secret) => address.file !== undefined || address.reveal().startsWith('rediss:')
    if (tls === undefined || sentinels !== undefined) return
    if (addresses.length > 0 && addresses.every(isTls)) return
    const message = 'this only goes with rediss:// addresses, or with sentinels'
    context.addIssue({ code: 'custom', path: ['tls'], message })
  })
  .transform((given) => {
    const { url, sentinels, cluster, name, prefix, ...rest } = given
    const access = { username: rest.username, password: rest.password, tls: rest.tls }
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

/** Which keys of the section exclude each other or are missing. Values are not checked, so they need not be valid. */
export function redisModeProblems(given: unknown): { key: string; message: string }[] {
  const has = (key: string) => property(given, key) !== undefined
  const modes = ['url', 'sentinels', 'cluster'].filter(has)
  const problems = modes.slice(1).map((key) => {
    return { key, message: `expected one of url, sentinels and cluster, but ${modes[0]} is there too` }
  })
  if (has('sentinels') && !has('name'))
    problems.push({ key: 'name', message: 'expected the name that the sentinels give the master' })
  if (!has('sentinels'))
    for (const key of ['name', 'sentinelUsername', 'sentinelPassword'].filter(has))
      problems.push({ key, message: 'this only goes with sentinels, and there are none' })
  return problems
}

/** An address may contain a password, so the whole address is a secret. */
function redisAddress(protocols: readonly string[], words: string) {
  const check = (secret: Secret, context: z.RefinementCtx<Secret>) => {
    if (secret.file !== undefined) return
    const text = secret.reveal()
    if (words.includes('embedded') && text === 'embedded') return
    // `URL` refuses a login without a host, as in the address of a socket.
    const url = URL.parse(text.replace(/^unix:\/\/[^/@?]*@/, 'unix://'))
    if (url !== null && url.hash !== '') {
      context.addIssue({ code: 'custom', message: 'a # ends an address: write it as %23' })
      return
    }
    const pathMissing = url?.protocol === 'unix:' && url.pathname.length < 2
    const known = url !== null && protocols.includes(url.protocol) && !pathMissing
    const message = known ? partProblem(text, url) : `expected an address that starts with ${words}`
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  }
  return secretField.superRefine(check).meta({ fieldKind: 'secret' })
}

/** What would be refused at the start. */
function partProblem(text: string, url: URL): string | undefined {
  if (!decodes(text)) return 'a % in an address is written as %25'
  if (url.protocol === 'unix:') {
    if (!/^unix:\/\/([^/@?]*@)?\//.test(text))
      return 'expected three slashes before the path of a socket, such as unix:///run/redis.sock'
    if (!/^\d{0,4}$/.test(url.searchParams.get('db') ?? ''))
      return 'expected the number of a database, such as ?db=0'
    const isAlone = /^\??(db=[^&]*)?$/.test(url.search)
    return isAlone ? undefined : 'after the ? of a socket goes the number of a database alone, such as ?db=0'
  }
  if (url.hostname === '') return 'expected a host in the address'
  if (url.search !== '')
    return 'nothing after a ? is read: the number of a database comes after the host, such as /0'
  const isNumber = /^\/?\d{0,4}$/.test(url.pathname)
  return isNumber ? undefined : 'expected the number of a database after the host, such as /0'
}

/** Of several addresses that are sound each, what the connections would not obey. Those in files are checked at the start. */
function checkCluster(nodes: readonly Secret[], context: z.RefinementCtx<Secret[]>): void {
  if (context.issues.length > 0) return
  const urls = nodes.map((node) => (node.file === undefined ? URL.parse(node.reveal()) : null))
  const [first] = urls
  for (const [index, url] of urls.entries()) {
    if (url === null) continue
    const message = /[1-9]/.test(url.pathname)
      ? 'a cluster has database 0 alone'
      : first && url.protocol !== first.protocol
        ? 'expected redis:// in all addresses of a cluster, or rediss:// in all'
        : first && hasOtherLogin(url, first)
          ? 'the login of the first address is that of all: write it there, or in redis.username and redis.password'
          : undefined
    if (message !== undefined) context.addIssue({ code: 'custom', path: [index], message })
  }
}

function hasOtherLogin(url: URL, first: URL): boolean {
  const has = url.username !== '' || url.password !== ''
  return has && (url.username !== first.username || url.password !== first.password)
}

function decodes(text: string): boolean {
  try {
    return decodeURIComponent(text) !== ''
  } catch {
    return false
  }
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
      return { sentinels: sentinels.map(hostPort), ...rest }
    }
  }
}

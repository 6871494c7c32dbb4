/** An SMTP server as its address describes it. */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** TLS from the first byte (smtps://); otherwise STARTTLS as configured. */
  readonly implicitTls: boolean
  readonly user: string | undefined
  readonly password: string | undefined
  /** The name this side gives itself in EHLO. */
  readonly name: string | undefined
  readonly authMethod: string | undefined
}

type ParsedSmtpUrl = { ok: true; server: SmtpServer } | { ok: false; problem: string }

const authMethods: ReadonlySet<string> = new Set(['PLAIN', 'LOGIN', 'CRAM-MD5'])

/**
 * `smtp://user:password@host:587?name=bridge.example.com&authMethod=LOGIN`. The problem never quotes the address. Only
 * these two options are known: others would let an address switch off the checks that the sink relies on.
 */
export function parseSmtpUrl(text: string): ParsedSmtpUrl {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'smtp:' && url.protocol !== 'smtps:') || url.hostname === '')
    return { ok: false, problem: 'expected an address such as smtps://user:password@mail.example.com' }
  if (!['', '/'].includes(url.pathname) || url.hash !== '')
    return {
      ok: false,
      problem: 'an SMTP address has no path (a / or # in the password is written %2F, %23)',
    }
  const user = decode(url.username)
  const password = decode(url.password)
  if (user === undefined || password === undefined)
    return { ok: false, problem: 'a % in the user or the password is written %25' }
  if ((user === '') !== (password === ''))
    return { ok: false, problem: 'user and password belong together: give both or neither' }
  const authMethod = url.searchParams.get('authMethod')?.toUpperCase()
  if (authMethod !== undefined && !authMethods.has(authMethod))
    return { ok: false, problem: `authMethod is one of ${[...authMethods].join(', ')}` }
  for (const option of url.searchParams.keys()) {
    if (option !== 'name' && option !== 'authMethod')
      return { ok: false, problem: 'the only options of an SMTP address are name and authMethod' }
  }
  const implicitTls = url.protocol === 'smtps:'
  return {
    ok: true,
    server: {
      host: url.hostname,
      port: url.port === '' ? (implicitTls ? 465 : 587) : Number(url.port),
      implicitTls,
      user: user === '' ? undefined : user,
      password: password === '' ? undefined : password,
      name: url.searchParams.get('name') ?? undefined,
      authMethod,
    },
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

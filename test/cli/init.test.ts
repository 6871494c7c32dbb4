import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { UsageError } from '../../src/cli/arguments/usage.ts'
import { createTerminal } from '../../src/cli/init/terminal.ts'
import { initCommand } from '../../src/cli/init.ts'
import { loadConfig } from '../../src/config/load.ts'
import { UserError } from '../../src/lib/errors.ts'
import { sandboxToken } from '../../src/sandbox/sandbox.ts'
import { run } from '../support/cli.ts'
import { asSystemdReads } from '../support/environment-file.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

let folder: string
beforeEach(() => {
  vi.stubEnv('npm_lifecycle_event', undefined)
  folder = mkdtempSync(join(tmpdir(), 'alert-bridge-init-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

const nobody = () => initCommand(() => undefined)
const at = (name: string) => join(folder, name)
const read = (name: string) => readFileSync(at(name), 'utf8')
/** A value that looks like a variable, and is none. */
const dollar = `https://a.example/\${x}`
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** What `check-config` says where systemd has set the variables of the environment file. */
function check(name: string, environment = '') {
  return loadConfig(at(name), { ...process.env, ...asSystemdReads(environment) })
}

describe('init with options', () => {
  it('checks the token, tries each sink, shows the plan, and writes a config that names no secret', async () => {
    const sandbox = await startSandbox({ history: 7, ratePerMinute: 0, unitsPerDay: 10 })
    const [hook, slack, smtp] = [
      await startWebhookReceiver(),
      await startSlackReceiver(),
      await startSmtpReceiver(),
    ]
    try {
      vi.stubEnv('MARKET_DATA_TOKEN', sandboxToken)
      vi.stubEnv('WEBHOOK_SECRET', secret)
      vi.stubEnv('SLACK_WEBHOOK_URL', slack.url)
      vi.stubEnv('SMTP_URL', smtp.url)
      const sinks = [
        `webhook,name=trading-system,url=${hook.url},allowPrivateNetworks=true`,
        'slack,allowPrivateNetworks=true',
        'email,from=Alerts <alerts@example.com>,to=a@example.com,b@example.com,allowPrivateNetworks=true',
      ]
      const printed = await run(
        nobody(),
        ...[at('bridge.yaml'), '--base-url', sandbox.url, '--units-per-day', '500'],
        ...sinks.flatMap((sink) => ['--sink', sink]),
      )
      expect(printed.thrown).toBeUndefined()
      expect(printed.out).toMatch(/the token works \(1 unit\): 7 alerts so far, the newest of 2/)
      expect(printed.out).toMatch(/trading-system: delivered .* 204/)
      expect(printed.out).toMatch(/email to b@example.com: delivered/)
      expect(printed.out).toMatch(/main: 500 units a day, the coming 24 hours/)
      const loaded = check('bridge.yaml')
      expect(loaded).toMatchObject({
        ok: true,
        config: { routes: [{ sinks: ['trading-system', 'slack', 'email'] }] },
      })
      for (const value of [sandboxToken, secret, slack.url, smtp.url])
        expect(printed.out + printed.err + read('bridge.yaml')).not.toContain(value)
      expect(hook.requests[0]?.headers['webhook-signature']).toMatch(/^v1,/)
      expect(slack.messages()).toHaveLength(1)
      expect(() => statSync(at('bridge.env'))).toThrow()
    } finally {
      await Promise.all([hook.stop(), slack.stop(), smtp.stop()])
    }
  })

  it('takes the token from a file, wherever it is run, and one whose budget is spent', async () => {
    const sandbox = await startSandbox({ history: 3, ratePerMinute: 0 })
    const receiver = await startSlackReceiver()
    vi.stubEnv('MARKET_DATA_TOKEN', '')
    vi.stubEnv('SLACK_WEBHOOK_URL', receiver.url)
    writeFileSync(at('token'), `${sandboxToken}\n`)
    const flags = ['--base-url', sandbox.url, '--token-file', relative(process.cwd(), at('token'))]
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '3600' })
    const printed = await run(
      nobody(),
      ...[at('bridge.yaml'), ...flags, '--sink', 'slack,allowPrivateNetworks=true'],
    )
    expect(printed.thrown).toBeUndefined()
    expect(printed.out).toMatch(/the token is known, but has nothing left for now: .*\n/)
    expect(read('bridge.yaml')).toContain(`    tokenFile: ${at('token')}\n`)
    expect(check('bridge.yaml')).toMatchObject({ ok: true })
    await receiver.stop()
  })

  it('never overwrites, neither the config nor the secrets', async () => {
    writeFileSync(at('bridge.yaml'), 'mine')
    writeFileSync(at('other.env'), 'mine')
    for (const [name, there] of [
      ['bridge.yaml', 'bridge.yaml'],
      ['other.yaml', 'other.env'],
    ] as const) {
      vi.stubEnv('MARKET_DATA_TOKEN', 'token')
      const flags = [
        '--unchecked',
        '--base-url',
        'https://api.example.com',
        '--sink',
        'webhook,url=https://a.example',
      ]
      const { thrown } = await run(nobody(), at(name), ...flags)
      expect(String(thrown)).toMatch(`${there} is there already`)
      expect(read(there)).toBe('mine')
    }
    expect(() => statSync(at('other.yaml'))).toThrow()
    // A name that is taken, though nothing is there to be seen: no secrets stay behind without their config.
    symlinkSync(at('nowhere'), at('link.yaml'))
    const flags = [
      '--unchecked',
      '--base-url',
      'https://api.example.com',
      '--sink',
      'webhook,url=https://a.example',
    ]
    const { thrown } = await run(nobody(), at('link.yaml'), ...flags)
    expect(String(thrown)).toMatch(/link\.yaml cannot be written: EEXIST/)
    for (const name of ['nowhere', 'link.env']) expect(() => statSync(at(name))).toThrow()
  })

  it('calls nobody where the folder of the file is not there or cannot be written', async () => {
    const receiver = await startWebhookReceiver()
    onTestFinished(() => receiver.stop())
    vi.stubEnv('MARKET_DATA_TOKEN', 'token')
    const flags = ['--base-url', receiver.url, '--sink', `webhook,url=${receiver.url}`]
    const { thrown } = await run(nobody(), at('etc/bridge.yaml'), ...flags)
    expect(String(thrown)).toMatch(/etc\/bridge\.yaml cannot be written: ENOENT/)
    expect(receiver.requests).toEqual([])
  })

  it.each([
    ['npx', 'npx alert-bridge'],
    ['cli', 'npm run -s cli --'],
  ])('names the next commands as somebody can type them who ran it by npm (%s)', async (script, program) => {
    vi.stubEnv('MARKET_DATA_TOKEN', 'token')
    vi.stubEnv('npm_lifecycle_event', script)
    const flags = ['--base-url', 'https://api.example.com', '--sink', 'webhook,url=https://a.example']
    const { out } = await run(nobody(), at('bridge.yaml'), '--unchecked', ...flags)
    expect(out).toContain(`\n  ${program} check-config ${at('bridge.yaml')}\n`)
    expect(out).toContain(`\n  ${program} run --config ${at('bridge.yaml')}\n`)
  })

  it.each([
    ['another token', { MARKET_DATA_TOKEN: 'wrong' }, 'webhook,url=https://a.example', /token.*[^.]\.$/m],
    [
      'a receiver that is not reached',
      {},
      'webhook,url=http://127.0.0.1:1/,allowPrivateNetworks=true',
      /not delivered \(connect/,
    ],
    [
      'a private address',
      {},
      'webhook,url=http://127.0.0.1:1/',
      /not delivered \(blocked_address\).*not public/,
    ],
    ['a value that no config may have', {}, 'webhook,url=ftp://a.example', /sinks\.webhook\.url: .*https/],
    ['a key that there is not', {}, 'webhook,url=https://a.example,tmeout=3s', /timeout/],
  ])('refuses %s, and writes nothing', async (_what, env, sink, words) => {
    const sandbox = await startSandbox({ history: 1, ratePerMinute: 0 })
    for (const [name, value] of Object.entries({ MARKET_DATA_TOKEN: sandboxToken, ...env }))
      vi.stubEnv(name, value)
    const { thrown } = await run(nobody(), at('bridge.yaml'), '--base-url', sandbox.url, '--sink', sink)
    expect(thrown).toBeInstanceOf(UserError)
    expect((thrown as UserError).message).toMatch(words)
    expect((thrown as UserError).message).toContain('Nothing was written')
    expect(() => statSync(at('bridge.yaml'))).toThrow()
  })

  it('says at once what is missing, takes no secret from the command line, and knows each type', async () => {
    vi.stubEnv('MARKET_DATA_TOKEN', '')
    vi.stubEnv('MARKET_DATA_URL', '')
    const missing = await run(
      nobody(),
      at('bridge.yaml'),
      '--sink',
      'email,to=a@example.com',
      '--sink',
      'slack',
    )
    expect(missing.thrown).toBeInstanceOf(UsageError)
    expect(String(missing.thrown)).toMatch(
      /MARKET_DATA_URL, MARKET_DATA_TOKEN, SMTP_URL, from=…, SLACK_WEBHOOK_URL\./,
    )
    const typed = await run(nobody(), at('bridge.yaml'), '--sink', 'slack,url=https://canary.example/x')
    expect(String(typed.thrown)).toMatch(/set SLACK_WEBHOOK_URL/)
    expect(String(typed.thrown)).not.toContain('canary')
    const twice = await run(nobody(), at('bridge.yaml'), '--sink', 'slack,name=a', '--sink', 'ntfy,name=a')
    expect(String(twice.thrown)).toMatch(/there are two of the name a; name one: ntfy,name=…/)
    const none = await run(nobody(), at('bridge.yaml'))
    expect(String(none.thrown)).toMatch(/--sink TYPE, MARKET_DATA_URL, MARKET_DATA_TOKEN\./)
    // And without a terminal nobody is asked.
    const alone = await run(initCommand(), at('bridge.yaml'))
    expect(String(alone.thrown)).toMatch(/Nobody can be asked here/)
    const unknown = await run(nobody(), at('bridge.yaml'), '--sink', 'pigeon')
    expect(String(unknown.thrown)).toMatch(/"pigeon" is none of webhook, slack/)
  })

  it('makes a signing secret where there is none, and several sinks of a type, in files that can be used as they are', async () => {
    vi.stubEnv('MARKET_DATA_TOKEN', 'token')
    vi.stubEnv('WEBHOOK_SECRET', '')
    const withToken = `https://c.example/in?token=canary'$x"\``
    const sinks = [dollar, 'https://b.example,concurrency=3', withToken].flatMap((url) => [
      '--sink',
      `webhook,url=${url}`,
    ])
    const flags = [at('b.yaml'), '--unchecked', '--json', '--base-url', 'http://api.example.com', ...sinks]
    const printed = await run(nobody(), ...flags)
    expect(printed.thrown).toBeUndefined()
    expect(printed.err).toMatch(/^warning: .*the token travels unencrypted/)
    expect(JSON.parse(printed.out)).toMatchObject({
      file: at('b.yaml'),
      environmentFile: at('b.env'),
      sinks: [],
    })
    expect(read('b.env')).toMatch(
      /^WEBHOOK_SECRET='whsec_[\w+/]{43}='\nWEBHOOK_SECRET_2='whsec_[\w+/]{43}='\n/,
    )
    // What others may read has no token in it.
    const sourced = execFileSync('sh', ['-c', 'set -a; . "$0"; set +a; env', at('b.env')], {
      encoding: 'utf8',
    })
    expect(sourced).toContain(`\nWEBHOOK_URL_3=${withToken}\n`)
    expect(read('b.yaml')).not.toContain('canary')
    // Where Redis is may be said later, without a change of the file.
    expect(read('b.yaml')).toContain(`\n  url: \${REDIS_URL:-embedded} `)
    expect(statSync(at('b.env')).mode & 0o777).toBe(0o600)
    expect(check('b.yaml', read('b.env'))).toMatchObject({
      ok: true,
      config: {
        sinks: { webhook: { url: dollar }, 'webhook-2': { concurrency: 3 }, 'webhook-3': { url: withToken } },
      },
    })
    const [, ...others] = flags
    const lines = (await run(nobody(), at("it's mine.yaml"), ...others.filter((flag) => flag !== '--json')))
      .out
    expect(lines).toContain(`  set -a; . '${at("it'\\''s mine.env")}'; set +a\n`)
    expect(lines).toContain(`  alert-bridge run --config '${at("it'\\''s mine.yaml")}'\n`)
  })
})

describe('init on a terminal', () => {
  it('asks for what is missing, asks again for what was refused, and never shows a secret', async () => {
    const sandbox = await startSandbox({ history: 3, ratePerMinute: 0 })
    for (const name of ['MARKET_DATA_TOKEN', 'MARKET_DATA_URL', 'SLACK_WEBHOOK_URL', 'TEAMS_WEBHOOK_URL'])
      vi.stubEnv(name, '')
    // What the environment has is not asked for; once it was refused, it is.
    vi.stubEnv('MARKET_DATA_TOKEN', 'mistyped')
    const [input, output] = [new PassThrough(), new PassThrough()]
    const answers = [
      ...[sandbox.url, '500', 'y'],
      ...[sandbox.url, sandboxToken, '۲۰۰۰', 'y'],
      ...[sandbox.url, sandboxToken, ''],
      ...['pigeon', 'slack teams'],
      ...['not an address', 'yes', 'http://127.0.0.1:1/services/T0/B0/canarySlack', 'n'],
      ...['http://127.0.0.1:1/canaryTeams', 'n'],
    ]
    input.write(answers.map((answer) => `${answer}\n`).join(''))
    const printed = await run(
      initCommand(() => createTerminal(input, output, false)),
      ...[at('bridge.yaml'), '--json'],
    )
    const asked = await text(output.end())
    expect(printed.thrown).toBeUndefined()
    expect(asked).toMatch(/token/)
    expect(asked).toContain('found "۲۰۰۰": expected a number')
    expect(asked).not.toMatch(/canary/)
    expect(JSON.parse(printed.out)).toMatchObject({
      token: { ok: true, alerts: 3 },
      plan: { unitsPerDay: 2_000 },
    })
    const environment = read('bridge.env')
    expect(environment).toContain(`MARKET_DATA_TOKEN='${sandboxToken}'\n`)
    expect(environment).toContain("TEAMS_WEBHOOK_URL='http://127.0.0.1:1/canaryTeams'\n")
    expect(check('bridge.yaml', environment)).toMatchObject({ ok: true })
  })

  it('shows what is typed, but nothing of a secret, also where it comes before it is asked for', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()]
    const terminal = createTerminal(input, output, true)
    const first = terminal.ask('a')
    input.write('first\ncanaryPasted\npasted too\ncanary')
    expect(await first).toBe('first')
    expect(await terminal.ask('b', { hidden: true })).toBe('canaryPasted')
    expect(await terminal.ask('c')).toBe('pasted too')
    const half = terminal.ask('d', { hidden: true })
    input.write('Typed\nhal')
    expect(await half).toBe('canaryTyped')
    const typed = terminal.ask('e')
    input.write('f typed\n')
    expect(await typed).toBe('half typed')
    terminal.close()
    const shown = await text(output.end())
    expect(shown).toMatch(/a: .*first\r\nb: \n.*c: .*pasted too\nd: \n.*e: .*hal.*f typed\r\n$/s)
    expect(shown).not.toMatch(/canary|Typed/)
  })

  it('offers to allow private networks where that is all that keeps a sink from its receiver', async () => {
    const sandbox = await startSandbox({ history: 3, ratePerMinute: 0 })
    const receiver = await startWebhookReceiver()
    for (const [name, value] of [
      ['MARKET_DATA_TOKEN', sandboxToken],
      ['MARKET_DATA_URL', sandbox.url],
      ['WEBHOOK_URL', receiver.url],
      ['WEBHOOK_SECRET', secret],
    ])
      vi.stubEnv(name ?? '', value)
    const [input, output] = [new PassThrough(), new PassThrough()]
    input.write(['', 'webhook', 'allow'].map((answer) => `${answer}\n`).join(''))
    const printed = await run(
      initCommand(() => createTerminal(input, output, false)),
      at('bridge.yaml'),
    )
    expect(printed.thrown).toBeUndefined()
    expect(await text(output.end())).toContain(
      'Type it again, or allow this sink to reach private networks? [Y/n/allow]',
    )
    expect(printed.out).toMatch(/webhook: delivered .* 204/)
    expect(receiver.requests).toHaveLength(1)
    expect(check('bridge.yaml')).toMatchObject({
      config: { sinks: { webhook: { allowPrivateNetworks: true } } },
    })
    await receiver.stop()
  })

  it('takes no other text for a yes or a no, and says of what was typed that it was typed', async () => {
    for (const name of ['MARKET_DATA_TOKEN', 'MARKET_DATA_URL']) vi.stubEnv(name, '')
    const [input, output] = [new PassThrough(), new PassThrough()]
    const address = 'https://new-api.example.com'
    const typed = ['new-api.example.com', 'token', '', address, 'new-api', 'Yes', address, 'token', '']
    input.end([...typed, 'webhook', 'https://a.example', ''].map((answer) => `${answer}\n`).join(''))
    const { thrown } = await run(
      initCommand(() => createTerminal(input, output, false)),
      ...[at('bridge.yaml'), '--unchecked'],
    )
    const asked = await text(output.end())
    expect(asked.match(/Type it again\? \[Y\/n\]: /g)).toHaveLength(3)
    expect(asked).toContain('sources.main.baseUrl: found what was typed, which is not shown: expected')
    expect(asked).not.toContain('what MARKET_DATA_URL holds')
    expect(thrown).toBeUndefined()
    expect(check('bridge.yaml', read('bridge.env'))).toMatchObject({
      config: { sources: { main: { baseUrl: address } } },
    })
  })

  it('ends at once where a person interrupts a check', async () => {
    vi.stubEnv('MARKET_DATA_TOKEN', '')
    const receiver = await startWebhookReceiver({ answer: { kind: 'hang' } })
    const input = new PassThrough()
    const ended = run(
      initCommand(() => createTerminal(input, new PassThrough(), true)),
      ...[at('bridge.yaml'), '--base-url', receiver.url],
    )
    input.write('token\n\n')
    await receiver.received(1)
    const startMs = performance.now()
    input.write('\u0003')
    expect(String((await ended).thrown)).toMatch(/Stopped. Nothing was written/)
    expect(performance.now() - startMs).toBeLessThan(2_000)
    await receiver.stop()
  })

  it('ends where the terminal ends, and writes nothing', async () => {
    const input = new PassThrough()
    input.end('https://api.example.com\n')
    const { thrown } = await run(
      initCommand(() => createTerminal(input, new PassThrough(), false)),
      at('bridge.yaml'),
    )
    expect(String(thrown)).toMatch(/Stopped. Nothing was written/)
    expect(() => statSync(at('bridge.yaml'))).toThrow()
  })
})

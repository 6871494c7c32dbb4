import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AdminPorts } from '../../src/admin/ports.ts'
import { NoAnswerError } from '../../src/cli/client/daemon.ts'
import { deadLettersCommand } from '../../src/cli/dead-letters.ts'
import { explainCommand } from '../../src/cli/explain.ts'
import { progressBar } from '../../src/cli/output/progress.ts'
import { pauseCommand, resumeCommand } from '../../src/cli/pause.ts'
import { quarantineCommand } from '../../src/cli/quarantine.ts'
import { replayCommand } from '../../src/cli/replay.ts'
import { silenceCommand } from '../../src/cli/silence.ts'
import { statusCommand } from '../../src/cli/status.ts'
import { whyCommand } from '../../src/cli/why.ts'
import type { Order } from '../../src/delivery/records/selection.ts'
import { versionHeader } from '../../src/telemetry/version.ts'
import { rig, token } from '../admin/rig.ts'
import { sink, status } from '../admin/views.ts'
import { run } from '../support/cli.ts'
import { writeConfig } from '../support/process.ts'

/** How the commands of the operator find the bridge, and what they need of its config. */

afterEach(() => vi.unstubAllEnvs())

async function listening(
  changes: Partial<AdminPorts> = {},
): Promise<{ port: number; calls: [string, ...unknown[]][] }> {
  const { app, calls } = rig(changes)
  onTestFinished(() => app.close())
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, calls }
}

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const secrets = `
sources: { main: { baseUrl: "\${NOWHERE_URL}", token: "\${NOWHERE_TOKEN}" } }
sinks: { mail: { type: email, smtpFile: /nowhere/smtp, from: nobody } }
routes: [{ sinks: [gone] }]
`

it('an address and a token are enough, from the environment or the command line', async () => {
  const { port, calls } = await listening()
  vi.stubEnv('ALERT_BRIDGE_URL', `http://127.0.0.1:${port}/`)
  expect((await run(statusCommand())).out).toContain('ready')
  // In words of the command line: its headers are nothing that a person can give.
  expect(String((await run(pauseCommand(), 'ops-slack')).thrown)).toMatch(
    /^UserError: This needs the admin token \(http\.adminToken .*--token, or in ALERT_BRIDGE_TOKEN/,
  )
  expect((await run(pauseCommand(), 'ops-slack', '--token', token)).out).toBe('ops-slack is paused\n')
  vi.stubEnv('ADMIN_TOKEN', 'that-of-another-program')
  vi.stubEnv('ALERT_BRIDGE_TOKEN', token)
  expect((await run(resumeCommand(), 'ops-slack')).out).toBe('ops-slack is active\n')
  expect(calls).toEqual([
    ['pause', 'ops-slack', { comment: '' }],
    ['resume', 'ops-slack', undefined],
  ])
  vi.stubEnv('ALERT_BRIDGE_URL', 'http://me:canary@127.0.0.1:1')
  expect(String((await run(statusCommand())).thrown)).toMatch(/ALERT_BRIDGE_URL: this is no http address/)
  vi.stubEnv('ALERT_BRIDGE_URL', '127.0.0.1:8080')
  expect(String((await run(statusCommand())).thrown)).toContain(
    'ALERT_BRIDGE_URL: "127.0.0.1:8080" is no http address such as http://127.0.0.1:8080',
  )
})

it.each([
  [
    'with an end',
    '2026-11-21T14:00:00.000Z',
    'they migrate',
    ' until 2026-11-21T17:30:00+03:30 (they migrate)',
  ],
  ['without an end', null, null, ''],
])(
  'who pauses a sink that is paused already is told of the pause that this replaces: %s',
  async (_, pausedUntil, reason, told) => {
    const sinks = [sink({ name: 'ops-slack', state: 'paused', pausedUntil, reason })]
    const { port } = await listening({ status: async () => status({ sinks }) })
    const at = ['--url', `http://127.0.0.1:${port}`, '--token', token]
    expect((await run(pauseCommand(), 'ops-slack', ...at)).out).toBe(
      `ops-slack is paused; this replaces its pause${told}\n`,
    )
  },
)

it('a sink is paused also where nobody can say how it was', async () => {
  const { port, calls } = await listening({ status: () => Promise.reject(new Error('no')) })
  const at = ['--url', `http://127.0.0.1:${port}`, '--token', token]
  expect((await run(pauseCommand(), 'ops-slack', ...at)).out).toBe('ops-slack is paused\n')
  expect(calls).toEqual([['pause', 'ops-slack', { comment: '' }]])
})

it('a token that would travel unencrypted to another machine is warned of, once a command', async () => {
  const { port } = await listening()
  const there = await run(
    pauseCommand(),
    'ops-slack',
    '--token',
    token,
    '--url',
    'http://192.0.2.1.invalid:1',
  )
  expect(there.err).toBe(
    'warning: the admin token travels unencrypted to 192.0.2.1.invalid:1; use https, or a tunnel\n',
  )
  const here = await run(pauseCommand(), 'ops-slack', '--token', token, '--url', `http://127.0.0.1:${port}`)
  expect(here.err).toBe('')
})

it('an alert that was never seen is explained by what is known around it', async () => {
  const { port } = await listening()
  const url = `http://127.0.0.1:${port}`
  const { out } = await run(whyCommand(), 'main.48300', '--url', url)
  expect(out).toContain('main.48300: the bridge has no record of it (any more)')
  expect(out).toContain('source main (running) was last polled at 2026-11-21T12:02:58+03:30')
  expect(out).toContain('the one before it that is known: main.48213, fired 2026-11-21T12:02:31+03:30')
  expect(out).toContain('the feed was not seen to have it')
  expect(out).toContain(
    'so the feed may show it at a poll that comes, or it fired before startFrom and was passed over, as 1,234 were, or the feed of this account never showed it',
  )
  expect(out).not.toContain('retention')
  const seen = (await run(whyCommand(), 'main.47000', '--url', url)).out
  expect(seen).toContain('the feed has shown it\n')
  expect(seen).toMatch(
    /so it fired before startFrom .*, or its record was dropped, or is older than retention keeps$/m,
  )
  expect((await run(whyCommand(), 'main.48213', '--url', url)).out).toContain('main.48213  price')
  expect((await run(whyCommand(), 'other.1', '--url', url)).out).toContain(
    'there is no source other; there is main',
  )
})

it('why of an alert without a record ends as any command with an id that is not known: with exit code 1', async () => {
  const { port } = await listening()
  const codes = ['main.48213', 'main.48300', 'main.47000', 'other.1'].map((id) => async () => {
    return (await run(whyCommand(), id, '--json', '--url', `http://127.0.0.1:${port}`)).exitCode
  })
  const found: number[] = []
  for (const code of codes) found.push(await code())
  expect(found).toEqual([0, 1, 1, 1])
})

it('an id may have the digits of a Persian or an Arabic keyboard', async () => {
  const { port, calls } = await listening()
  const at = ['--url', `http://127.0.0.1:${port}`, '--token', token]
  expect((await run(whyCommand(), 'main.۴۸۲۱۳', ...at)).out).toContain('main.48213  price')
  await run(replayCommand(), 'main.۴۸۲۱۳', 'main.٤٨٢١٤', ...at)
  expect(calls).toContainEqual(['replay', expect.objectContaining({ ids: ['main.48213', 'main.48214'] })])
  await run(explainCommand(), 'main.۴۸۲۱۳', ...at.slice(0, 2))
  expect(calls.at(-1)?.slice(0, 3)).toEqual(['explain', 'main', 48_213])
})

it('a dry run says how many and names some, and changes nothing', async () => {
  const orders: Order[] = []
  const { port, calls } = await listening({
    replay: async (order) => {
      orders.push(order)
      const [sample, { limit, cursor }] = [[{ source: 'main', id: 48_213, firedAtMs: 0 }], order]
      const next = limit === 0 ? { cursor: 'a' } : cursor === 'a' ? { cursor: 'b' } : {}
      const handled = limit === 0 ? 0 : 2
      return { total: 4, looked: handled, handled, gone: 0, missing: [], atMs: 0, sample, ...next }
    },
  })
  const at = ['--url', `http://127.0.0.1:${port}`, '--token', token, '--dry-run']
  const { out } = await run(replayCommand(), '--since', '2h', ...at)
  expect(out).toBe('4 would be sent again, such as main.48213; nothing was changed\n')
  // The bridge counts, by the rules of the order itself.
  expect(orders.map(({ dryRun, limit, cursor }) => [dryRun, limit, cursor])).toEqual([
    [true, 0, undefined],
    [true, undefined, 'a'],
    [true, undefined, 'b'],
  ])
  const rows = await run(quarantineCommand(), 'drop', '--all', ...at)
  expect(rows.out).toBe('1 would be dropped, such as main.raw-0123; nothing was changed\n')
  const json = await run(quarantineCommand(), 'retry', '--all', '--json', ...at)
  expect(JSON.parse(json.out)).toEqual({ dryRun: true, count: 1, sample: ['main.raw-0123'] })
  expect(calls.map(([name]) => name)).toEqual(['quarantine', 'quarantine'])
})

it('a silence that holds nothing back says so, and how a pattern is written', async () => {
  const { port } = await listening({
    silences: {
      ...{ list: async () => [], expire: async () => true },
      add: async () => ({ id: 's1', match: {}, startsAt: '', endsAt: 'noon', comment: '', problem: null }),
      preview: async (match) => ({ matching: 'symbol' in match ? 0 : 3, looked: 9, sample: [] }),
    },
  })
  const add = async (match: string) => {
    const at = ['--for', '1h', '--url', `http://127.0.0.1:${port}`, '--token', token]
    return (await run(silenceCommand(), 'add', '--match', match, ...at)).out
  }
  expect(await add('kind=price')).toBe(
    'silence s1 is set until noon; 3 of the 9 alerts of the last day would have matched\n',
  )
  expect(await add('symbol=SIL')).toBe(
    'silence s1 is set until noon; 0 of the 9 alerts of the last day would have matched\n',
  )
  expect(await add('symbol=SIL*')).toMatch(
    /0 of the 9 .* matched \(symbol=SIL\* is compared as it is written: symbol\*=SIL\* is the pattern\)\n$/,
  )
})

describe('of the config', () => {
  it('only http is needed: no variable, file or mistake beside it is in the way', async () => {
    const { port, calls } = await listening()
    const config = writeConfig(`${secrets}http: { listen: "127.0.0.1:${port}", adminToken: ${token} }\n`)
    expect((await run(pauseCommand(), 'ops-slack', '--config', config)).out).toBe('ops-slack is paused\n')
    expect((await run(statusCommand(), '--config', config)).out).toContain('ready')
    expect(calls).toEqual([['pause', 'ops-slack', { comment: '' }]])
  })

  it('the admin token is needed only by what changes something, and the sentence says what is missing', async () => {
    const { port, calls } = await listening()
    const config = writeConfig(
      `${secrets}http: { listen: "127.0.0.1:${port}", adminToken: "\${NOWHERE_ADMIN}" }\n`,
    )
    expect((await run(statusCommand(), '--config', config)).out).toContain('ready')
    const { thrown } = await run(pauseCommand(), 'ops-slack', '--config', config)
    expect(String(thrown)).toContain(
      `${config}:5: http.adminToken: the environment variable NOWHERE_ADMIN is not set`,
    )
    expect(calls).toEqual([])
    vi.stubEnv('ADMIN_TOKEN', token)
    expect((await run(pauseCommand(), 'ops-slack', '--config', config)).out).toBe('ops-slack is paused\n')
  })

  it('a mistake in http is told with its place', async () => {
    const config = writeConfig(`${secrets}http: { listen: 8080, adminTokn: x }\n`)
    const { thrown } = await run(statusCommand(), '--config', config)
    expect(String(thrown)).toMatch(
      /:5: http\.listen: found 8080: expected host:port.*\n.*:5: http\.adminTokn: unknown key/,
    )
    expect(String(thrown)).not.toContain('sinks')
  })

  it('a port that is another one at each start is none to ask at', async () => {
    const config = writeConfig(`${secrets}http: { listen: "127.0.0.1:0" }\n`)
    expect(String((await run(statusCommand(), '--config', config)).thrown)).toMatch(/http\.listen .*--url/)
  })

  it('an alias of another section means what it means there', async () => {
    const { port } = await listening()
    const config = writeConfig(`routes: &place "127.0.0.1:${port}"\nhttp: { listen: *place }\n`)
    expect((await run(statusCommand(), '--config', config)).out).toContain('ready')
  })
})

it('a token that no header carries is refused before anything is sent', async () => {
  const { port, calls } = await listening()
  vi.stubEnv('ADMIN_TOKEN', 'رمز canary')
  const { thrown } = await run(pauseCommand(), 'ops-slack', '--url', `http://127.0.0.1:${port}`)
  expect(String(thrown)).toMatch(/ADMIN_TOKEN: expected a token: letters, digits and signs of ASCII/)
  expect(String(thrown)).not.toContain('canary')
  expect(calls).toEqual([])
})

it('who only reads sends no token, wherever the address leads', async () => {
  vi.stubEnv('ADMIN_TOKEN', token)
  const sent: (string | undefined)[] = []
  const url = await serving((request, response) => {
    sent.push(request.headers.authorization)
    response.end('{}')
  })
  const config = writeConfig(`${secrets}http: { adminToken: ${token} }\n`)
  for (const more of [[], ['--config', config]]) await run(statusCommand(), '--url', url, ...more)
  await run(deadLettersCommand(), 'list', '--url', url)
  expect(sent).toEqual([undefined, undefined, undefined])
})

describe('what answers and is no bridge', () => {
  const others: [string, RequestListener][] = [
    ['takes everything', (_, response) => void response.end('{}')],
    ['has a page for everything', (_, response) => void response.end('<!doctype html>welcome')],
    ['knows nothing', (_, response) => void response.writeHead(404).end('{"detail":"canary"}')],
    [
      'is a proxy without a bridge behind it',
      (_, response) => void response.writeHead(502).end('Bad Gateway'),
    ],
  ]

  it.each(others)('a server that %s is told from one', async (_what, listener) => {
    vi.stubEnv('ADMIN_TOKEN', token)
    const url = await serving(listener)
    for (const [command, ...args] of [
      [pauseCommand(), 'nosuch'],
      [resumeCommand(), 'nosuch'],
      [replayCommand(), 'main.1'],
      [deadLettersCommand(), 'list'],
      [statusCommand()],
    ] as const) {
      const { out, thrown } = await run(command, ...args, '--url', url)
      expect(String(thrown)).toMatch(
        /^\w*Error: What answers at http:\/\/127\.0\.0\.1:\d+ is no alert-bridge \(HTTP \d+\)/,
      )
      expect(out).toBe('')
    }
  })
})

describe('an answer that begins and does not end', () => {
  const ways: [string, RequestListener][] = [
    [
      'breaks off',
      (_, response) => {
        response.writeHead(200, { [versionHeader]: 'x', 'content-length': 99 }).write('{"data":')
        setTimeout(() => response.destroy(), 20)
      },
    ],
    [
      'is cut short',
      (_, response) => void response.writeHead(200, { [versionHeader]: 'x' }).end('{"data": [{"id'),
    ],
  ]

  it.each(ways)('because it %s is one sentence, whatever was asked', async (_way, listener) => {
    vi.stubEnv('ADMIN_TOKEN', token)
    const url = await serving(listener)
    for (const [command, ...args] of [
      [statusCommand()],
      [deadLettersCommand(), 'list'],
      [pauseCommand(), 'ops-slack'],
      [silenceCommand(), 'expire', 'one'],
      [replayCommand(), 'main.1'],
    ] as const) {
      const { out, thrown } = await run(command, ...args, '--url', url)
      expect(thrown).toBeInstanceOf(NoAnswerError)
      expect(String(thrown)).toContain(
        `The bridge at ${url} did not end its answer. What you asked it to do may have been done.`,
      )
      expect(out).toBe('')
    }
  })
})

describe('what an answer contains', () => {
  const evil = 'x\u001b[2J\r\nFAKE \u202e'
  const calm = 'x\\u001b[2J\\r\\nFAKE \\u202e'

  it('neither moves the cursor nor starts a line, whoever wrote it', async () => {
    const order = { at: evil, total: 1, looked: 1, gone: 0, queued: 1, unknown: [evil] }
    const answers: Record<string, object> = {
      '/api/v1/status': {
        ...{ version: evil, role: evil, uptimeSeconds: 1, unrouted: evil, quarantined: evil },
        ...{ sources: [], sinks: [], ready: { ok: true } },
        verdict: { ready: true, level: 'failed', headline: evil, findings: [{ text: evil }] },
      },
      '/api/v1/silences': { data: { id: evil, endsAt: evil } },
      '/api/v1/quarantine/retry': { retried: evil, unreadable: evil },
      '/api/v1/quarantine?limit=500': { data: [{ source: 'main', key: '4', seenAt: evil, reason: evil }] },
    }
    const url = await serving(async (request, response) => {
      const sent = Buffer.concat(await request.toArray()).toString()
      const answer = answers[request.url ?? ''] ?? {
        ...order,
        cursor: sent.includes('limit') ? 'more' : null,
      }
      response.writeHead(200, { [versionHeader]: 'x' }).end(JSON.stringify(answer))
    })
    for (const [lines, command, ...given] of [
      [8, statusCommand()],
      [3, whyCommand(), 'main.4'],
      [1, replayCommand(), 'main.4'],
      [1, quarantineCommand(), 'retry', '--all'],
      [1, silenceCommand(), 'add', '--match', 'symbol=a', '--for', '1h'],
    ] as const) {
      const { out } = await run(command, ...given, '--url', url)
      expect(out).toContain(calm)
      expect(out.trimEnd().split('\n')).toHaveLength(lines)
    }
  })

  it('nor does it where a terminal shows how far an order is', () => {
    const written: string[] = []
    const terminal = { isTTY: true, write: (text: string) => written.push(text) }
    progressBar(evil, terminal as unknown as NodeJS.WriteStream).show(1, 2)
    expect(written.join('')).toBe(`\r\x1b[K${calm} ${'█'.repeat(12)}${'░'.repeat(12)} 1 of 2`)
  })
})

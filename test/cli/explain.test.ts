import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { UsageError } from '../../src/cli/arguments/usage.ts'
import { explainCommand } from '../../src/cli/explain.ts'
import { UserError } from '../../src/lib/errors.ts'
import { versionHeader } from '../../src/telemetry/version.ts'
import { fixture } from '../config/config-text.ts'
import { run } from '../support/cli.ts'

const row = {
  id: 7,
  kind: 'price',
  symbol: 'فولاد',
  payload: [],
  headline: 'h',
  url: 'https://example.com/7',
  ruleIds: ['3'],
  firedAt: '2026-11-21T09:00:00Z',
  channels: [],
  isRead: false,
}

const config = `
sources:
  main: { baseUrl: "https://api.example.com", token: CANARY }
  other: { baseUrl: "https://api.example.com", token: CANARY }
sinks:
  hook: { type: webhook, url: "https://hooks.example.com/a" }
  desk: { type: webhook, url: "https://hooks.example.com/b" }
  spare: { type: webhook, url: "https://hooks.example.com/c" }
routes:
  - { name: steel, match: { kind: price, symbol: فولاد, ruleId: [12, 15] }, sinks: [desk] }
  - { match: { source: other, kind: [price] }, sinks: [hook] }
  - { match: { kind: [screen, price] }, sinks: [hook, spare] }
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'alert-bridge-explain-'))
  writeFileSync(join(folder, 'config.yaml'), config)
})
afterEach(() => rmSync(folder, { recursive: true }))

function explain(body: unknown, ...args: string[]) {
  writeFileSync(join(folder, 'alert.json'), typeof body === 'string' ? body : JSON.stringify(body))
  return run(explainCommand(), join(folder, 'alert.json'), '--config', join(folder, 'config.yaml'), ...args)
}

describe('explain', () => {
  it('says which routes take the alert, and why the others do not', async () => {
    const { out, exitCode } = await explain(row, '--source', 'main')
    expect(exitCode).toBe(0)
    expect(out.split('\n')).toEqual([
      'main.7: kind price, symbol فولاد, rules 3',
      '  no   routes[0] (steel) → desk: ruleId is 3, wanted 12 or 15',
      '  no   routes[1] → hook: source is main, wanted other',
      '  yes  routes[2] → hook, spare: matches',
      'sent to: hook, spare',
      'not sent to: desk',
      expect.stringMatching(
        /^as of \S+\+03:30, without the silences and rules of a running bridge \(--url\)$/,
      ),
      '',
    ])
  })

  it('takes the source from the body of a webhook, and from a story', async () => {
    const body = { type: 'alert.fired', data: { source: 'other', delivery: row } }
    const story = { ...row, source: 'other', deliveries: [], held: [] }
    const at = ['--at', '2026-11-21T08:45:00Z']
    for (const shown of [story, { data: story }])
      expect((await explain(shown, ...at)).out).toBe((await explain(body, ...at)).out)
    const { out } = await explain(body, '--json')
    expect(JSON.parse(out)).toMatchObject({
      alert: { source: 'other', id: 7 },
      sinks: ['hook', 'spare'],
      decisions: [
        { index: 0, name: 'steel', taken: false, misses: [{ field: 'ruleId', found: ['3'] }] },
        { index: 1, taken: true, reason: 'matched' },
        { index: 2, taken: true },
      ],
    })
  })

  it('needs no source where there is only one', async () => {
    writeFileSync(join(folder, 'alert.json'), JSON.stringify({ data: { delivery: row } }))
    const least = fixture('good/least').path
    const { out } = await run(explainCommand(), join(folder, 'alert.json'), '--config', least)
    expect(out).toContain('  yes  routes[0] → ops: takes everything\nsent to: ops\n')
  })

  it('shows what holds back at a time, what may at another, and what is bought once', async () => {
    writeFileSync(
      join(folder, 'config.yaml'),
      config.replace(
        'sinks: [hook, spare] }',
        'sinks: [hook, spare], context: [price, chart, price], throttle: { per: 10m }, mute: [{ days: [fri], from: "22:00", to: "06:00" }] }',
      ),
    )
    const at = ['--source', 'main', '--at', '2026-11-20T23:00:00+03:30']
    const { out } = await explain(row, ...at)
    expect(out.split('\n').slice(3)).toEqual([
      '  held routes[2] → hook, spare: muted until 2026-11-21T06:00:00+03:30',
      '         mute: fri 22:00–06:00 Asia/Tehran',
      '         context, for units: price (1), chart (2)',
      '         throttle: at most one in 10m for each symbol, ruleId',
      'sent to: none',
      'held back from: hook, spare',
      'not sent to: desk',
      'as of 2026-11-20T23:00:00+03:30, without the silences and rules of a running bridge (--url)',
      '',
    ])
    const json = JSON.parse((await explain(row, ...at, '--json')).out)
    expect(json).toMatchObject({
      at: '2026-11-20T19:30:00.000Z',
      sinks: [],
      decisions: [{}, {}, { reason: 'muted' }],
    })
    expect((await explain(row, '--source', 'main', '--at', '2026-11-21T12:00:00Z')).out).toContain(
      '  yes  routes[2]',
    )
  })

  it('says what follows where the rule is not known', async () => {
    const match = 'match: { rule: { name: { glob: "Steel*" } }'
    writeFileSync(
      join(folder, 'config.yaml'),
      config.replace('match: { kind: [screen, price] }', `${match} }`),
    )
    const { out } = await explain(row, '--source', 'main')
    expect(out).toContain(
      '  yes  routes[2] → hook, spare: all but the rule matches; unknown rule 3, so it is delivered (whenRuleUnknown)',
    )
  })

  it('asks a running bridge for its silences and rules', async () => {
    const match = 'match: { rule: { name: { glob: "Steel*" } }'
    writeFileSync(
      join(folder, 'config.yaml'),
      config.replace('match: { kind: [screen, price] }', `${match} }`),
    )
    const endsAt = new Date(Date.now() + 60_000).toISOString()
    const answers: Record<string, unknown> = {
      '/api/v1/silences': [
        {
          id: 's1',
          match: { symbol: ['فولاد'] },
          startsAt: '2026-01-01T00:00:00Z',
          endsAt,
          comment: 'audit',
        },
      ],
      '/api/v1/rules': [{ source: 'main', id: 3, name: 'Steel over 5,000' }],
    }
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'application/json').setHeader(versionHeader, '0.1.0')
      response.end(JSON.stringify({ data: answers[request.url?.split('?')[0] ?? ''] }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const at = ['--url', `http://127.0.0.1:${port}`, '--utc']
    const { out } = await explain(row, '--source', 'main', ...at)
    expect(out).toContain(`  held routes[2] → hook, spare: silenced by s1 until ${endsAt} (audit)`)
    expect(out).toMatch(/with the silences and rules of a running bridge\n$/)
  })

  it.each([
    ['a source that is missing', row, [], '--source must say which source the alert came from: main, other.'],
    ['a source that is not there', row, ['--source', 'x'], 'There is no source x; there is main, other.'],
    ['a file that is no JSON', '{', ['--source', 'main'], /alert\.json: this is no JSON$/],
    [
      'a row that is no alert',
      { id: 0 },
      ['--source', 'main'],
      /^This is no alert, and would be quarantined: id:/,
    ],
  ])('refuses %s in one sentence', async (_, body, args, sentence) => {
    const { thrown, out } = await explain(body, ...args)
    expect(thrown).toBeInstanceOf(UserError)
    expect((thrown as Error).message).toMatch(sentence)
    expect(out).toBe('')
  })

  it('reads no more of a file without an end than its limit', async () => {
    const { thrown } = await run(explainCommand(), '/dev/zero', '--config', join(folder, 'config.yaml'))
    expect(thrown).toEqual(new UserError('/dev/zero: the file cannot be read: it has more than 64 MiB'))
  })

  it('waits for what the program before it in a pipe will write', async () => {
    // The import of node:process is the one that commander does, and that makes a pipe non-blocking.
    const module = JSON.stringify(join(import.meta.dirname, '../../src/cli/arguments/file-argument.ts'))
    const code = `import 'node:process'; import { readFileArgument } from ${module}
      console.log('reads')
      console.log((await readFileArgument('-')).text)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let out = ''
    child.stdout.on('data', (part) => {
      out += String(part)
      if (out === 'reads\n') child.stdin.end('written late')
    })
    await once(child, 'close')
    expect(out).toBe('reads\nwritten late\n')
  })

  it.each(['4711', '99999999999999999', 'main.99999999999999999'])(
    'of %s says what an alert is called',
    async (id) => {
      const { thrown } = await run(explainCommand(), id)
      expect(thrown).toBeInstanceOf(UsageError)
      expect((thrown as Error).message).toBe(`"${id}" is no alert: expected SOURCE.ID, such as main.4711.`)
    },
  )

  it('of what is neither a file nor an id says what an alert is called', async () => {
    const { thrown } = await run(explainCommand(), 'main.abc')
    expect(thrown).toEqual(
      new UsageError('"main.abc" is no file and no alert: expected SOURCE.ID, such as main.4711.'),
    )
  })

  it('is refused with the mistakes of the config', async () => {
    writeFileSync(join(folder, 'config.yaml'), config.replace('spare]', 'spar]'))
    const { thrown } = await explain(row)
    expect(thrown).toBeInstanceOf(UserError)
    const mistake = 'config.yaml:12: routes[2].sinks[1]: found "spar": there is no sink of this name'
    expect((thrown as Error).message).toContain(mistake)
  })

  it('cannot be made to write control characters to the terminal', async () => {
    const { out } = await explain({ ...row, kind: 'price\u001b[31m', symbol: 'a\u202eb' }, '--source', 'main')
    expect([out.includes('\u001b'), out.includes('\u202e')]).toEqual([false, false])
  })
})

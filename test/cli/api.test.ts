import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openLookups } from '../../src/app/source/lookups.ts'
import { apiCommand } from '../../src/cli/api.ts'
import { configOf as loadedConfig } from '../../src/cli/arguments/config-file.ts'
import { UsageError } from '../../src/cli/arguments/usage.ts'
import { prepareLoose } from '../../src/feed/api/request.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { UserError } from '../../src/lib/errors.ts'
import { startEmbeddedRedis } from '../../src/store/connection/embedded.ts'
import { embeddedPaths, lockDir } from '../../src/store/connection/embedded-paths.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { rateMinuteMs } from '../../src/store/ledger/minute.ts'
import { run as runCommand } from '../support/cli.ts'
import { passingClock } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { startProgram, testFolder, writeConfig } from '../support/process.ts'
import { answersPing, freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'

/** The command against the sandbox over real HTTP, counting in a real Redis. */
const redis = useRedis()

async function runProgram(...args: string[]) {
  const program = startProgram(['api', ...args])
  const code = await program.ended(60_000)
  return { code, out: program.stdout(), err: program.stderr().trim() }
}

/** As the program does, without its start. */
async function run(...args: string[]) {
  const { out, err, thrown } = await runCommand(apiCommand(), ...args)
  const code = thrown === undefined ? 0 : thrown instanceof UsageError ? 2 : 1
  if (thrown !== undefined && !(thrown instanceof UserError)) throw thrown
  return { code, out, err: `${err}${thrown?.message ?? ''}`.trim() }
}

function configOf(
  baseUrl: string,
  more: { prefix?: string; units?: number; redisUrl?: string; token?: string; account?: string } = {},
) {
  const { prefix = freshPrefix(), units = 1_000, redisUrl = redis.url, token = 'sandbox-token' } = more
  const account = more.account === undefined ? '' : `account: ${more.account}, `
  const folder = testFolder()
  const file = writeConfig(
    `redis: { url: "${redisUrl}", prefix: ${prefix} }
dataDir: ${join(folder, 'data')}
sources: { main: { baseUrl: "${baseUrl}", token: ${token}, ${account}budget: { unitsPerDay: ${units} } } }
sinks: { hook: { type: webhook, url: "http://127.0.0.1:1/", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
`,
    folder,
  )
  return { file, prefix }
}

/** Spends as a running bridge does. */
function bridgeLedger(prefix: string, unitsPerDay: number, of: { source?: string; account?: string } = {}) {
  return createLedger({
    ...{ redis: redis.client(), prefix, source: 'main', unitsPerDay, requestsPerMinute: 200, ...of },
    budgetDay: tehranDay,
  })
}

function tehranDay(nowMs: number) {
  const [dayMs, offsetMs] = [86_400_000, 12_600_000]
  const startMs = Math.floor((nowMs + offsetMs) / dayMs) * dayMs - offsetMs
  return { key: new Date(startMs + offsetMs).toISOString().slice(0, 10), startMs, endMs: startMs + dayMs }
}

describe('api --dry-run', () => {
  it('prints what a call needs and costs, without a config', async () => {
    const path = '/api/v1/instruments/فولاد/prices'
    const { code, out } = await run('GET', path, '--query', 'days=30', '--dry-run')
    expect(code).toBe(0)
    expect(out).toBe(
      'GET /api/v1/instruments/%D9%81%D9%88%D9%84%D8%A7%D8%AF/prices?days=30\nscope: api:prices\ncost:  2 units\n',
    )
    const body = '{"screenId":31}'
    const posted = await run('post', '/api/v1/screener/run', '--data', body, '--dry-run', '--json')
    expect(JSON.parse(posted.out)).toMatchObject({
      ...{ method: 'POST', path: '/api/v1/screener/run', scope: 'api:screener', cost: 25 },
      body: { screenId: 31 },
    })
  })

  it.each<[string[], RegExp]>([
    [
      ['GET', '/api/v1/instruments/foolad/prices', '--query', 'days=5'],
      /days: expected a whole number from 20 to 365, found "?5"?/,
    ],
    [
      ['GET', '/api/v1/filings', '--query', 'parsedOnly=toString'],
      /parsedOnly: expected true or false, found "toString"/,
    ],
    [['GET', '/api/v1/macro/series'], /keys\[\]: expected 1 to 5 texts, found nothing/],
    [
      ['GET', '/api/v1/board', '--query', 'perPage=9'],
      /perPage: there is no such parameter; there are group,/,
    ],
    [
      ['GET', '/api/v1/price'],
      /There is no endpoint \/api\/v1\/price; api --help lists those that there are\.$/,
    ],
    [['POST', '/api/v1/board'], /takes GET, not POST/],
    [['GET', '/api/v1/board', '--query', 'group'], /--query: "group" is not NAME=VALUE/],
    [['POST', '/api/v1/screener/run', '--data', '{'], /--data: this is no JSON/],
    [['GET', '/api/v1/macro', '--all'], /--all: \/api\/v1\/macro has no pages/],
    [['GET', '/api/v1/board?page=2', '--all'], /leave page out/],
  ])('refuses %j with one sentence and exit code 2', async (args, sentence) => {
    const { code, out, err } = await run(...args, '--dry-run')
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(sentence)
  })
})

describe('api', () => {
  it('prints the answer as it came, and counts its units with what the bridge spends', async () => {
    const sandbox = await startSandbox()
    const { file, prefix } = configOf(sandbox.url)
    const ledger = bridgeLedger(prefix, 1_000)
    await ledger.reserve({ cost: 7, purpose: 'poll' })
    const { code, out, err } = await runProgram(
      'GET',
      '/api/v1/instruments/فولاد/prices',
      '--query',
      'days=30',
      '--config',
      file,
    )
    expect([code, err]).toEqual([0, ''])
    const { data } = JSON.parse(out) as { data: { unit: string; points: unknown[] } }
    expect([data.unit, data.points.length]).toEqual(['rial', 30])
    expect(sandbox.unitsUsed).toBe(2)
    const today = tehranDay(Date.now())
    expect(await ledger.used(today)).toEqual({ used: 9, byPurpose: { poll: 7, api: 2 } })
  })

  it('makes no call where lookups have no units left, or where what is left is for polling', async () => {
    const sandbox = await startSandbox()
    const { file, prefix } = configOf(sandbox.url, { units: 50 })
    const path = '/api/v1/instruments/101/ownership'
    const [first, second] = [
      await run('GET', path, '--config', file),
      await run('GET', path, '--config', file),
    ]
    expect([first.code, second.code]).toEqual([0, 0])
    const third = await run('GET', path, '--config', file)
    expect([third.code, third.out]).toEqual([1, ''])
    expect(third.err).toMatch(
      /^This call costs 5 units, and lookups have none left of what they may use of a day \(20 % of 50\)\. .*Nothing was sent\.$/,
    )
    expect(sandbox.requests).toHaveLength(2)
    const polled = configOf(sandbox.url, { units: 50 })
    await bridgeLedger(polled.prefix, 50).reserve({ cost: 45, purpose: 'poll' })
    expect((await run('GET', '/api/v1/macro', '--config', polled.file)).err).toMatch(/is for polling\. /)
    expect(sandbox.requests).toHaveLength(2)
    expect(prefix).not.toBe(polled.prefix)
  })

  it('says how many units lookups have left where a call costs more than those, which a cheaper call may still use', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url, { units: 40 })
    const asked = (path: string) => run('GET', `/api/v1/instruments/101${path}`, '--config', file)
    expect((await asked('/ownership')).code).toBe(0)
    expect((await asked('')).code).toBe(0)
    expect((await asked('/ownership')).err).toMatch(
      /^This call costs 5 units, and lookups have only 1 unit left of what they may use of a day \(20 % of 40\)\. /,
    )
    expect((await run('GET', '/api/v1/macro', '--config', file)).code).toBe(0)
    expect((await run('GET', '/api/v1/macro', '--config', file)).err).toContain('lookups have none left')
  })

  it('counts with the units that the API grants, where its refusals showed less than the config says', async () => {
    const sandbox = await startSandbox()
    const { file, prefix } = configOf(sandbox.url, { units: 1_000 })
    const grants = createGrantStore({ redis: redis.client(), prefix, source: 'main' })
    const path = '/api/v1/instruments/101/ownership'
    await grants.save({ v: 1, unitsPerDay: 20, resetsAtMs: null, learnedAtMs: Date.now() })
    // Tomorrow will not do either.
    expect((await run('GET', path, '--config', file)).err).toBe(
      'This call costs 5 units, more than lookups may ever use of a day (20 % of 20): raise context.unitsShare of the source. Nothing was sent.',
    )
    await grants.save({ v: 1, unitsPerDay: 30, resetsAtMs: null, learnedAtMs: Date.now() })
    await bridgeLedger(prefix, 1_000).reserve({ cost: 27, purpose: 'poll' })
    expect((await run('GET', path, '--config', file)).err).toMatch(
      /what is left of the day's 30 is for polling\. /,
    )
    expect(sandbox.requests).toHaveLength(0)
  })

  it('reads every page of a list, with its progress on stderr, and prints what was read when it ends early', async () => {
    const sandbox = await startSandbox({ history: 250 })
    const { file } = configOf(sandbox.url, { units: 15 })
    const all = await run('GET', '/api/v1/alerts/deliveries', '--all', '--config', file)
    expect(all.code).toBe(0)
    const answer = JSON.parse(all.out) as { data: { id: number }[]; meta: { total: number } }
    expect([new Set(answer.data.map(({ id }) => id)).size, answer.meta.total]).toEqual([250, 250])
    expect(all.err.split('\n')).toEqual([
      'page 1 of 3: 100 of 250 rows',
      'page 2 of 3: 200 of 250 rows',
      'page 3 of 3: 250 of 250 rows',
    ])
    const short = await run(
      'GET',
      '/api/v1/alerts/deliveries',
      '--all',
      '--config',
      configOf(sandbox.url, { units: 10 }).file,
    )
    expect([short.code, (JSON.parse(short.out) as typeof answer).data.length]).toEqual([1, 200])
    expect(short.err).toContain('lookups have none left')
  })

  it('leaves polls a tenth of the minute: one call is refused, and a list waits for its next page', async () => {
    const sandbox = await startSandbox({ history: 250 })
    const { file, prefix } = configOf(sandbox.url)
    // So many of 200 were made nearly a minute ago.
    const client = redis.client()
    const { minute } = sourceKeys(prefix, 'main')
    const freeInMs = 6_000
    const madeAtMs = Number((await client.time())[0]) * 1_000 - rateMinuteMs + freeInMs
    await client.zadd(minute, ...Array.from({ length: 179 }, (_, at) => [madeAtMs, `earlier ${at}`]).flat())
    const all = run('GET', '/api/v1/alerts/deliveries', '--all', '--config', file)
    await vi.waitFor(() => expect(sandbox.requests).toHaveLength(1), { timeout: 5_000, interval: 5 })
    expect(await client.zcard(minute)).toBe(180)
    const poll = { cost: 1, purpose: 'poll' } as const
    const another = { ...poll, purpose: 'api', leaveFresh: true } as const
    const ledger = bridgeLedger(prefix, 1_000)
    expect(await ledger.reserve(another)).toMatchObject({ ok: false, limit: 'minute' })
    expect(await ledger.reserve(poll)).toMatchObject({ ok: true })
    const { code, out } = await all
    expect([code, (JSON.parse(out) as { data: unknown[] }).data.length]).toEqual([0, 250])
    const [first, second] = sandbox.requests
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(500)
    await client.zadd(minute, ...Array.from({ length: 180 }, (_, at) => [Date.now(), `later ${at}`]).flat())
    expect(await run('GET', '/api/v1/macro', '--config', file)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^The requests of this minute are used up\. .*Nothing was sent\.$/),
    })
    expect(sandbox.requests).toHaveLength(3)
  })

  it('waits for the minute no longer than five of them: polls may leave lookups none for ever', async () => {
    const sandbox = await startSandbox({ history: 1 })
    const { file, prefix } = configOf(sandbox.url)
    const client = redis.client()
    const { minute } = sourceKeys(prefix, 'main')
    await client.zadd(minute, ...Array.from({ length: 180 }, (_, at) => [Date.now(), `polls ${at}`]).flat())
    const { main } = loadedConfig(file).config.sources
    const prepared = prepareLoose('/api/v1/alerts', {})
    if (main === undefined || !prepared.ok) throw new Error('the test is wrong')
    const passing = passingClock()
    let sleeps = 0
    const clock: Clock = {
      ...passing,
      sleep(ms, signal) {
        sleeps += 1
        return passing.sleep(ms, signal)
      },
    }
    const { signal } = new AbortController()
    const lookups = await openLookups(loadedConfig(file).config, 'main', main, signal, clock)
    onTestFinished(() => lookups.close())
    const asked = lookups.ask(prepared.request, { waitForMinute: true }).catch((thrown: unknown) => thrown)
    await vi.waitFor(() => expect(sleeps).toBe(1), { timeout: 5_000, interval: 5 })
    passing.pass(4 * 60_000)
    await vi.waitFor(() => expect(sleeps).toBe(2), { timeout: 5_000, interval: 5 })
    passing.pass(61_000)
    expect(await asked).toMatchObject({
      message:
        'For 5m there was no request left for lookups: polls come first, and requestsPerMinute is 200. Raise it, or poll less often. Nothing was sent.',
    })
    expect(sandbox.requests).toHaveLength(0)
  })

  it('shows a bar over the pages of a list where stderr is a terminal', async () => {
    const sandbox = await startSandbox({ history: 250 })
    const { file } = configOf(sandbox.url)
    const { isTTY } = process.stderr
    onTestFinished(() => {
      process.stderr.isTTY = isTTY
    })
    process.stderr.isTTY = true
    const { code, err } = await run('GET', '/api/v1/alerts/deliveries', '--all', '--config', file)
    expect([code, err.match(/[\d]+ of \d+/g)]).toEqual([0, ['100 of 250', '200 of 250', '250 of 250']])
    expect(err).not.toContain('page 1')
  })

  it('says in one sentence what the API refused, and keeps every replica away after a 429', async () => {
    const sandbox = await startSandbox({ unitsPerDay: 3 })
    const { file, prefix } = configOf(sandbox.url)
    const missing = await run('GET', '/api/v1/instruments/nobody', '--config', file)
    expect([missing.code, missing.out]).toEqual([1, ''])
    expect(missing.err).toMatch(/^The API holds no such instrument; [^\n]+ \(HTTP 404\)[^\n]+\.$/)
    const spent = await run('GET', '/api/v1/instruments/101/prices', '--config', file)
    expect(spent.err).toMatch(/^The day's request budget is spent \(HTTP 429\)/)
    expect(await bridgeLedger(prefix, 1_000).currentHold()).toMatchObject({ limit: 'budget' })
    expect((await run('GET', '/api/v1/macro', '--config', file)).err).toMatch(/^The API asked to wait/)
    expect(sandbox.requests).toHaveLength(2)
  })

  it('does not deny an instrument of which the API holds no letter of the id that was asked for', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url)
    const path = '/api/v1/instruments/foolad/statements'
    expect(await run('GET', path, '--config', file)).toMatchObject({ code: 0 })
    const { code, err } = await run('GET', path, '--query', 'letter=999999999', '--config', file)
    expect(code).toBe(1)
    expect(err).toMatch(
      /^The API holds no such instrument, or of it no such letter; [^\n]+ \(HTTP 404\)[^\n]+\.$/,
    )
  })

  it('counts with the other sources of its account, and keeps them away after a 429', async () => {
    const sandbox = await startSandbox({ unitsPerDay: 3 })
    const { file, prefix } = configOf(sandbox.url, { account: 'desk' })
    const other = bridgeLedger(prefix, 1_000, { source: 'other', account: 'desk' })
    await other.reserve({ cost: 7, purpose: 'poll' })
    for (const code of [0, 1])
      expect(await run('GET', '/api/v1/instruments/101/prices', '--config', file)).toMatchObject({ code })
    expect(await other.used(tehranDay(Date.now()))).toEqual({ used: 11, byPurpose: { poll: 7, api: 4 } })
    expect(await other.currentHold()).toMatchObject({ limit: 'budget' })
    const grants = createGrantStore({ redis: redis.client(), prefix, source: 'other', account: 'desk' })
    await vi.waitFor(async () => expect(await grants.load()).toMatchObject({ v: 1 }))
  })

  it('names the scope that a token lacks', async () => {
    const sandbox = await startSandbox({ tokens: [{ value: 'narrow', scopes: ['api:alerts'] }] })
    const { file } = configOf(sandbox.url, { token: 'narrow' })
    expect((await run('GET', '/api/v1/macro', '--config', file)).err).toMatch(/lacks the scope api:macro,/)
  })

  it('prints an answer that is not the documented one, and says so', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":{"points":[]}}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const { file } = configOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const { code, out, err } = await run('GET', '/api/v1/instruments/1/prices', '--config', file)
    expect([code, JSON.parse(out)]).toEqual([0, { data: { points: [] } }])
    expect(err).toBe('This is not the documented record: data.unit: expected string, found nothing.')
  })

  it('counts with an embedded Redis too, which the next call finds', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url, { redisUrl: 'embedded', units: 10 })
    const asked = () => run('GET', '/api/v1/instruments/foolad', '--config', file)
    expect((await asked()).code).toBe(0)
    expect((await asked()).err).toContain('lookups have none left')
    expect(sandbox.requests).toHaveLength(1)
  })

  it('sends nothing where the embedded Redis of a bridge does not answer, and does not say to stop that bridge', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url, { redisUrl: 'embedded' })
    const unlock = await lockDir(embeddedPaths(join(dirname(file), 'data')).dir)
    onTestFinished(unlock)
    const { code, err } = await run('GET', '/api/v1/board', '--config', file)
    expect([code, err]).toEqual([
      1,
      'Redis does not answer, so that units cannot be counted. Nothing was sent.',
    ])
  })

  it('counts in the embedded Redis of the bridge that runs, and leaves it running', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url, { redisUrl: 'embedded', units: 10 })
    const running = await startEmbeddedRedis({ dataDir: join(dirname(file), 'data'), log: captureLog().log })
    onTestFinished(() => running.stop())
    const asked = () => run('GET', '/api/v1/instruments/foolad', '--config', file)
    expect((await asked()).code).toBe(0)
    expect((await asked()).err).toContain('lookups have none left')
    expect(await answersPing(running.socketPath)).toBe(true)
  })

  it('gives dataDir to a bridge that starts, and prints what it has read', async () => {
    const sandbox = await startSandbox({ history: 2_000 })
    sandbox.fault({ kind: 'slow', delayMs: 150, times: 0 })
    const { file } = configOf(sandbox.url, { redisUrl: 'embedded', units: 1_000 })
    const all = run('GET', '/api/v1/alerts/deliveries', '--all', '--config', file)
    await vi.waitFor(() => expect(sandbox.requests.length).toBeGreaterThan(1), { timeout: 20_000 })
    const dataDir = join(dirname(file), 'data')
    const log = captureLog()
    const running = await startEmbeddedRedis({ dataDir, log: log.log, asksToLeave: true })
    onTestFinished(() => running.stop())
    const { code, out, err } = await all
    expect(code).toBe(1)
    expect(err).toMatch(/A bridge starts on this dataDir, so this command ends here; [^\n]+\.$/)
    const { data } = JSON.parse(out) as { data: unknown[] }
    expect(data).toHaveLength(sandbox.requests.length * 100)
    expect(data.length).toBeLessThan(2_000)
    const second = startEmbeddedRedis({ dataDir, log: log.log, asksToLeave: true })
    await expect(second).rejects.toThrow('another alert-bridge is running')
  })

  it('makes no call where Redis does not answer: what cannot be counted is not spent', async () => {
    const sandbox = await startSandbox()
    const { file } = configOf(sandbox.url, { redisUrl: 'redis://127.0.0.1:1' })
    const { code, err } = await run('GET', '/api/v1/macro', '--config', file)
    expect([code, err]).toEqual([
      1,
      'Redis does not answer, so that units cannot be counted. Nothing was sent.',
    ])
    expect(sandbox.requests).toHaveLength(0)
  })
})

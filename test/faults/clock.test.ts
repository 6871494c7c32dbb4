import { join } from 'node:path'
import { expect, it } from 'vitest'
import { api, metric, readiness } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
/** Long enough that the clock surely jumps while they wait. */
const waiting = 'allowPrivateNetworks: true, retry: { initialDelay: 1s, maxDelay: 2s }'

it('a clock of the machine that jumps a day ahead and two days back loses and repeats nothing, and stops nothing', {
  timeout: 90_000,
}, async () => {
  const row = failureRow('The clock of its machine jumps')
  const [feed, calm] = [await startSandbox({ requestsPerMinute: 1_000_000 }), await startSandbox()]
  const hooks = [
    await startWebhookReceiver(),
    await startWebhookReceiver(),
    await startWebhookReceiver(),
  ] as const
  const shown = showing(feed)
  let down = false
  const [patient, strict] = hooks.map((hook) =>
    logOf('hook', hook, { status: 204 }, () => (down ? { status: 503 } : undefined)),
  )
  if (!patient || !strict) throw new Error('no logs')
  const config = writeConfig(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources:
      main: { baseUrl: "${feed.url}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms }, budget: { unitsPerDay: 1000000 } }
      # Polls here because the clock jumps, and for no other reason.
      calm: { baseUrl: "${calm.url}", token: sandbox-token, startFrom: beginning, poll: { every: 10m }, budget: { unitsPerDay: 1000 } }
    sinks:
      patient: { type: webhook, url: "${hooks[0].url}", ${waiting}, expireAfter: 7d }
      strict: { type: webhook, url: "${hooks[1].url}", ${waiting}, expireAfter: 24h }
      calm: { type: webhook, url: "${hooks[2].url}", ${waiting} }
    routes: [{ match: { source: [main] }, sinks: [patient, strict] }, { match: { source: [calm] }, sinks: [calm] }]
  `)
  const program = startProgram(['run', '--config', config], {
    NODE_OPTIONS: `--import=${join(import.meta.dirname, '../support/clock-shift.ts')}`,
    CLOCK_JUMPS: '25,-49,24',
  })
  const url = String((await program.logged('listening'))['address'])
  shown.fire(3)
  await until('the first arrive', () => hasAll(shown, patient) && hasAll(shown, strict))
  const deadMarks = async () => {
    const { data } = await api<{ data: { id: number; sink: string; reason: string }[] }>(
      url,
      '/api/v1/dead-letters',
    )
    expect(data.filter(({ sink, reason }) => sink !== 'strict' || !/expire/.test(reason))).toEqual([])
    const ids = new Set(data.map(({ id }) => id))
    return new Set([...shown.ids].flatMap(([mark, id]) => (ids.has(id) ? [mark] : [])))
  }
  const healedMs: number[] = []
  let polledMs = 0
  for (const direction of ['ahead', 'back', 'right again']) {
    down = true
    // One alert holds no queue: then it is its own delay that the clock makes longer.
    const count = direction === 'back' ? 1 : 3
    shown.fire(count)
    const attempts = patient.attempts() + strict.attempts()
    await until(
      'some wait for their next attempt',
      () => patient.attempts() + strict.attempts() >= attempts + 2 * count,
    )
    if (direction === 'back') calm.fire()
    down = false
    program.kill('SIGUSR2')
    const jumpedMs = performance.now()
    await until(`those that wait arrive (${direction})`, () => hasAll(shown, patient), 20_000)
    healedMs.push(performance.now() - jumpedMs)
    if (direction !== 'back') continue
    await hooks[2].received(1, 20_000)
    polledMs = performance.now() - jumpedMs
  }
  shown.fire(3)
  await until('what fires then arrives', () => hasAll(shown, patient))
  let dead = new Set<string>()
  await until('all is concluded', async () => {
    dead = await deadMarks()
    return new Set([...dead, ...strict.taken]).size >= shown.ids.size
  })
  await row.kept('everything', () => {
    expect(judge(shown, patient)).toEqual(clean)
    expect(judge(shown, strict, { dead })).toEqual(clean)
    expect(hooks[2].requests).toHaveLength(1)
  })
  await row.kept(
    'with a jump ahead, an alert that waits may become older than `expireAfter` and is then a dead letter',
    () => {
      // Those of before the jump; of the later ones, more or fewer.
      expect([...dead]).toEqual(expect.arrayContaining(['A00004', 'A00005', 'A00006']))
      expect([...dead].filter((mark) => strict.taken.includes(mark))).toEqual([])
    },
  )
  await row.twice('nothing', () => {
    for (const { taken } of [patient, strict]) expect(new Set(taken).size).toBe(taken.length)
  })
  await row.heals('15 s for polling', polledMs)
  await row.heals('8 s for alerts that wait for an attempt', Math.max(...healedMs))
  expect(await readiness(url)).toBe('ok')
  expect(await metric(url, 'alert_bridge_poller_restarts_total{source="main"}')).toBe(0)
})

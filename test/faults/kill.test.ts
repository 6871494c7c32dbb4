import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { createRandom, type Random } from '../../src/sandbox/random.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { until } from '../support/app.ts'
import { clean, hasAll, judge, logOf, mailLog, repeats, type SinkLog, showing } from '../support/oracle.ts'
import { type Program, startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { type StartedSandbox, startSandbox } from '../support/sandbox.ts'
import { leftToSend, letLeasesRunOut, sceneConfig } from '../support/scene.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { type ReceiverAnswer, startWebhookReceiver } from '../support/webhook-receiver.ts'

/**
 * The real process, killed again and again while alerts fire and sinks misbehave. After each kill the lease and the
 * locks of the dead process are removed, as time would remove them within 25 seconds: a kill is what is tested here,
 * not the patience of the test. (The replicas' tests wait for it.)
 */
const kills = process.env['LONG'] === '1' ? 200 : 20
/** More alerts fire during a short life than it can send, so what is left for the last one grows with the kills. */
const drainMsPerKill = 3_000
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const redis = useRedis({ aof: true })

it('a bridge that is killed at any moment, again and again, loses no alert and repeats only what it was sending', {
  timeout: 90_000 + kills * (8_000 + drainMsPerKill),
}, async () => {
  const random = createRandom(seed)
  const prefix = freshPrefix()
  const client = redis.client()
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const [hook, slack, smtp] = [
    await startWebhookReceiver(),
    await startSlackReceiver(),
    await startSmtpReceiver(),
  ]
  const shown = showing(sandbox)
  const logs: readonly SinkLog[] = [
    logOf('hook', hook, { status: 204, afterMs: 15 }, () => moody(random)),
    logOf('ops', slack, { status: 200, body: 'ok', afterMs: 15 }, () => moody(random)),
    mailLog('desk', smtp, () => (random.next() < 0.05 ? { code: 451, text: 'later' } : undefined)),
  ]
  const names = logs.map(({ name }) => name)
  const config = writeConfig(configText({ prefix, feed: sandbox.url, hook, slack, smtp }))
  const steady = setInterval(() => shown.fire(), 100)
  const cutOff = new Map(logs.map(({ name }) => [name, new Map<string, number>()]))
  const counted = new Set<string>()
  let inFlight = 0
  try {
    for (let kill = 0; kill < kills; kill += 1) {
      shown.fire(kill % 8 === 3 ? 130 : random.int(7))
      const program = startProgram(['run', '--config', config])
      await program.logged('started', 20_000)
      await momentOf(random, program, { sandbox, logs })
      program.kill('SIGKILL')
      expect(await program.ended()).toBe('SIGKILL')
      for (const { name } of logs) {
        for (const { mark, start } of await beingSent(client, prefix, name)) {
          if (counted.has(start)) continue
          counted.add(start)
          inFlight += 1
          const own = cutOff.get(name)
          own?.set(mark, (own.get(mark) ?? 0) + 1)
        }
      }
      await letLeasesRunOut(client, prefix)
    }
  } finally {
    clearInterval(steady)
  }
  const last = startProgram(['run', '--config', config])
  await last.logged('started', 20_000)
  await until(
    `everything arrives (seed ${seed}: ${logs.map(({ name, taken }) => `${name} ${taken.length}`)} of ${shown.ids.size})`,
    () => logs.every((log) => hasAll(shown, log)),
    kills * drainMsPerKill,
  )
  await until('nothing is left to send', async () => (await leftToSend(client, prefix, names)) === 0, 60_000)
  last.kill('SIGTERM')
  expect(await last.ended(30_000)).toBe(0)

  for (const log of logs)
    expect({
      seed,
      sink: log.name,
      ...judge(shown, log, { cutOff: cutOff.get(log.name) ?? new Map() }),
    }).toEqual({ seed, sink: log.name, ...clean })
  const again = logs.reduce((sum, log) => sum + repeats(log), 0)
  expect(again).toBeLessThanOrEqual(inFlight)
  process.stdout.write(
    `${kills} kills (seed ${seed}), ${shown.ids.size} alerts to each of 3 sinks: none lost, ${again} repeats of ${inFlight} sends that were cut off\n`,
  )
})

it('a bridge with its own Redis that is killed polls and sends again at once after its restart', {
  timeout: 120_000,
}, async () => {
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const folder = testFolder()
  const config = writeConfig(
    `dataDir: ./data\n${sceneConfig({ redis: { url: 'embedded' }, feed: sandbox.url, sinks: { hook: hook.url } })}`,
    folder,
  )
  onTestFinished(() => endRedisOf(join(folder, 'data')))
  const shown = showing(sandbox)
  let hanging = true
  const log = logOf('hook', hook, { status: 204 }, () => (hanging ? { kind: 'hang' } : undefined))
  const first = startProgram(['run', '--config', config])
  await first.logged('started', 40_000)
  shown.fire(2)
  await until('they are being sent', () => log.attempts() >= 2, 20_000)
  first.kill('SIGKILL')
  await first.ended()
  hanging = false
  const next = startProgram(['run', '--config', config])
  const started = await next.logged('started', 40_000)
  const polled = await next.logged('poll.done', 20_000)
  await until('what was being sent arrives', () => hasAll(shown, log), 20_000)
  const sent = await next.logged('delivery.attempt')
  expect(afterMs(started, polled)).toBeLessThan(10_000)
  expect(afterMs(started, sent)).toBeLessThan(13_000)
  next.kill('SIGTERM')
  expect(await next.ended(30_000)).toBe(0)
})

/** By what the log says, so that how busy the machine of the test is counts for less. */
function afterMs(from: Record<string, unknown>, to: Record<string, unknown>): number {
  return Date.parse(String(to['time'])) - Date.parse(String(from['time']))
}

/** The redis-server of a bridge that was killed, where the test did not get as far as its next start. */
function endRedisOf(dataDir: string): void {
  try {
    process.kill(Number(readFileSync(join(dataDir, 'redis.pid'), 'utf8')), 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Nine sends in ten go well. */
function moody(random: Random): ReceiverAnswer | undefined {
  const dice = random.next()
  if (dice < 0.04) return { status: 503, body: 'busy' }
  if (dice < 0.06) return { kind: 'reset' }
  if (dice < 0.08) return { kind: 'broken', status: 200 }
  if (dice < 0.09) return { kind: 'hang' }
  return undefined
}

/** Waits for the moment of the kill: any time, or the very instant of a poll, of a send or of an answer. */
async function momentOf(
  random: Random,
  program: Program,
  { sandbox, logs }: { sandbox: StartedSandbox; logs: readonly SinkLog[] },
): Promise<void> {
  const [hook, slack, mail] = logs.map((log) => [log.attempts(), log.taken.length] as const)
  const polls = sandbox.requests.length
  const nth = 1 + random.int(12)
  const moments = [
    () => false,
    () => sandbox.requests.length > polls + random.int(2),
    () => (logs[0]?.attempts() ?? 0) >= (hook?.[0] ?? 0) + nth,
    () => (logs[1]?.attempts() ?? 0) >= (slack?.[0] ?? 0) + nth,
    () => (logs[2]?.attempts() ?? 0) >= (mail?.[0] ?? 0) + nth,
    () => (logs[2]?.taken.length ?? 0) > (mail?.[1] ?? 0),
  ] as const
  const moment = random.pick(moments)
  const deadlineMs = performance.now() + random.int(1_200)
  while (performance.now() < deadlineMs && !moment()) {
    if (program.child.exitCode !== null) throw new Error(`it ended by itself: ${program.stderr()}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** The jobs that had been taken and not been concluded, each with how often it was started. */
async function beingSent(client: Redis, prefix: string, sink: string) {
  const queue = `${queuePrefix(prefix)}:${sink}`
  const jobs = await client.lrange(`${queue}:active`, 0, -1)
  return Promise.all(
    jobs.map(async (id) => {
      const [data, started] = await client.hmget(`${queue}:${id}`, 'data', 'ats')
      return { mark: /A\d{5}/.exec(data ?? '')?.[0] ?? id, start: `${sink} ${id} ${started}` }
    }),
  )
}

function configText(parts: {
  prefix: string
  feed: string
  hook: { url: string }
  slack: { url: string }
  smtp: { url: string }
}): string {
  const common =
    'allowPrivateNetworks: true, timeout: 3s, rateLimit: { max: 1000, per: 1s }, retry: { attempts: 100, initialDelay: 100ms, maxDelay: 500ms }'
  return `
redis: { url: "${redis.url}", prefix: ${parts.prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${parts.feed}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms }, budget: { unitsPerDay: 1000000, requestsPerMinute: 240 } } }
sinks:
  hook: { type: webhook, url: "${parts.hook.url}", ${common} }
  ops: { type: slack, url: "${parts.slack.url}", ${common} }
  desk: { type: email, smtp: "${parts.smtp.url}", startTls: "off", from: Alerts <alerts@example.com>, to: [desk@example.com], ${common} }
routes: [{ sinks: [hook, ops, desk] }]
`
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { createRandom, type Random } from '../../src/sandbox/random.ts'
import { embeddedPaths } from '../../src/store/connection/embedded-paths.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { leftToSend } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { onTestFinished } from '../support/finished.ts'
import { hasAll, judge, logOf, mailLog, repeats, type SinkLog, showing } from '../support/oracle.ts'
import { type Program, startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { type StartedSandbox, startSandbox } from '../support/sandbox.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { type ReceiverAnswer, startWebhookReceiver } from '../support/webhook-receiver.ts'

/**
 * The real process, killed again and again while alerts fire and sinks misbehave: with a Redis of its own, where nothing
 * is waited for, and with one that others may use, where leases and locks run out in their own time. Nothing is removed
 * by hand.
 */
const long = process.env['LONG'] === '1'
/** The last one of each is the kill after which is measured what heals when. */
const kills = long ? { own: 150, shared: 50 } : { own: 14, shared: 6 }
/** More alerts fire during a short life than it can send, so what is left for the last one grows with the kills. */
const drainMsPerKill = 4_000
const drainMsMin = 60_000
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const redis = useRedis({ aof: true })

it('a bridge that is killed at any moment, again and again, loses no alert and repeats only what it was sending', {
  timeout: 180_000 + (kills.own + kills.shared) * 12_000,
}, async () => {
  const row = failureRow('It is killed (`SIGKILL`), at any moment')
  const folder = testFolder()
  const place = embeddedPaths(join(folder, 'data'))
  onTestFinished(() => endRedisOf(place.pidFile))
  const [own, shared] = await Promise.all([
    lane({
      redis: 'embedded',
      socketPath: place.socketPath,
      folder,
      kills: kills.own,
      random: createRandom(seed),
    }),
    lane({
      redis: redis.url,
      socketPath: redis.socketPath,
      folder: testFolder(),
      kills: kills.shared,
      random: createRandom(seed + 1),
    }),
  ])
  const verdicts = [...own.verdicts, ...shared.verdicts]
  await row.kept('everything', () =>
    expect(verdicts.flatMap(({ missing, unknown }) => [missing, unknown]).flat(), `seed ${seed}`).toEqual([]),
  )
  await row.twice('what it was sending at that moment', () => {
    expect(verdicts.flatMap(({ doubled, misnamed }) => [doubled, misnamed]).flat(), `seed ${seed}`).toEqual(
      [],
    )
    for (const { again, inFlight } of [own, shared]) expect(again).toBeLessThanOrEqual(inFlight)
  })
  await row.heals('polling and what was being sent go on 10–25 s after the kill, by lease and locks', () =>
    expect(Math.max(shared.polledAtMs, shared.sentAtMs) - shared.killedAtMs).toBeLessThanOrEqual(25_000),
  )
  await row.heals(
    'with the embedded Redis, which nobody else can use, polling within 5 s of the restart',
    own.polledAtMs - own.startedAtMs,
  )
  await row.heals('what was being sent within 12 s of it', own.sentAtMs - own.startedAtMs)
  for (const [name, { again, inFlight, shown }] of Object.entries({ own, shared }))
    process.stdout.write(
      `${name}: seed ${seed}, ${shown} alerts to each of 3 sinks: none lost, ${again} repeats of ${inFlight} sends that were cut off\n`,
    )
})

interface Lane {
  /** As the config takes it. */
  readonly redis: string
  readonly socketPath: string
  /** Of its config, and of an embedded Redis. */
  readonly folder: string
  readonly kills: number
  readonly random: Random
}

/** One source, three sinks, and a bridge that dies `kills` times. */
async function lane({ redis, socketPath, folder, kills, random }: Lane) {
  const prefix = freshPrefix()
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const [hook, slack, smtp] = [
    await startWebhookReceiver(),
    await startSlackReceiver(),
    await startSmtpReceiver(),
  ]
  const shown = showing(sandbox)
  let mood: 'moody' | 'hanging' | 'good' = 'moody'
  const hung: string[] = []
  const hookAnswer = (mark: string): ReceiverAnswer | undefined => {
    if (mood !== 'hanging') return mood === 'moody' ? moody(random) : undefined
    hung.push(mark)
    return { kind: 'hang' }
  }
  const logs: readonly SinkLog[] = [
    logOf('hook', hook, { status: 204, afterMs: 15 }, hookAnswer),
    logOf('ops', slack, { status: 200, body: 'ok', afterMs: 15 }, () =>
      mood === 'moody' ? moody(random) : undefined,
    ),
    mailLog('desk', smtp, () =>
      mood === 'moody' && random.next() < 0.05 ? { code: 451, text: 'later' } : undefined,
    ),
  ]
  const config = writeConfig(
    configText({ redis, dataDir: join(folder, 'data'), prefix, feed: sandbox.url, hook, slack, smtp }),
    folder,
  )
  const look = watchSends(socketPath, prefix, logs)
  let alive = true
  const steady = setInterval(() => alive && shown.fire(), 200)
  onTestFinished(() => clearInterval(steady))
  const start = async () => {
    const program = startProgram(['run', '--config', config])
    await program.logged('started', 40_000)
    alive = true
    return program
  }
  const kill = async (program: Program) => {
    program.kill('SIGKILL')
    const atMs = Date.now()
    alive = false
    expect(await program.ended()).toBe('SIGKILL')
    await look.note()
    return atMs
  }

  for (let count = 1; count < kills; count += 1) {
    shown.fire(count % 8 === 3 ? 130 : random.int(7))
    const program = await start()
    await momentOf(random, program, { sandbox, logs })
    await kill(program)
  }

  // The last kill hits one that polls, and that has sends under way.
  const victim = await start()
  await victim.logged('poll.done', 30_000)
  mood = 'hanging'
  await until('alerts are being sent', () => hung.length > 2, 30_000)
  const killedAtMs = await kill(victim)
  mood = 'good'
  const cutOff = new Set(hung)
  const restartedAtMs = Date.now()
  const last = await start()
  clearInterval(steady)
  const sentAgain = () =>
    new Map(
      hook.requests
        .filter(({ atMs }) => atMs > restartedAtMs)
        .map(({ body, atMs }) => [/A\d{5}/.exec(body)?.[0] ?? '', atMs]),
    )
  await until(
    'what was being sent goes out again',
    () => [...cutOff].every((mark) => sentAgain().has(mark)),
    40_000,
  )
  const polled = await last.logged('poll.done', 40_000)
  await until(
    `everything arrives (seed ${seed}: ${logs.map(({ name, taken }) => `${name} ${taken.length}`)} of ${shown.ids.size})`,
    () => logs.every((log) => hasAll(shown, log)),
    drainMsMin + kills * drainMsPerKill,
  )
  await until('nothing is left to send', async () => (await look.left()) === 0, 60_000)
  last.kill('SIGTERM')
  expect(await last.ended(30_000)).toBe(0)
  return {
    killedAtMs,
    startedAtMs: timeOf(await last.logged('started')),
    polledAtMs: timeOf(polled),
    sentAtMs: Math.max(...[...cutOff].map((mark) => sentAgain().get(mark) ?? Infinity)),
    shown: shown.ids.size,
    verdicts: logs.map((log) => judge(shown, log, { cutOff: look.cutOff.get(log.name) ?? new Map() })),
    again: logs.reduce((sum, log) => sum + repeats(log), 0),
    inFlight: look.inFlight(),
  }
}

/** By what the log says, so that how busy the machine of the test is counts for less. */
function timeOf(line: Record<string, unknown>): number {
  return Date.parse(String(line['time']))
}

/** The redis-server of a bridge that was killed, where the test did not get as far as its next start. */
function endRedisOf(pidFile: string): void {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Notes after each kill what was being sent, which is what may come twice. */
function watchSends(socketPath: string, prefix: string, logs: readonly SinkLog[]) {
  const names = logs.map(({ name }) => name)
  const cutOff = new Map(names.map((name) => [name, new Map<string, number>()]))
  const counted = new Set<string>()
  const asking = async <T>(ask: (client: Redis) => Promise<T>): Promise<T> => {
    const client = new Redis({ path: socketPath, maxRetriesPerRequest: 5, retryStrategy: () => 50 })
    client.on('error', () => {})
    try {
      return await ask(client)
    } finally {
      client.disconnect()
    }
  }
  return {
    cutOff,
    inFlight: () => counted.size,
    left: () => asking((client) => leftToSend(client, prefix, names)),
    note: () =>
      asking(async (client) => {
        for (const name of names) {
          for (const { mark, start } of await beingSent(client, prefix, name)) {
            if (counted.has(start)) continue
            counted.add(start)
            const own = cutOff.get(name)
            own?.set(mark, (own.get(mark) ?? 0) + 1)
          }
        }
      }),
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
  redis: string
  dataDir: string
  prefix: string
  feed: string
  hook: { url: string }
  slack: { url: string }
  smtp: { url: string }
}): string {
  const common =
    'allowPrivateNetworks: true, timeout: 3s, rateLimit: { max: 1000, per: 1s }, retry: { attempts: 100, initialDelay: 100ms, maxDelay: 500ms }'
  return `
dataDir: ${parts.dataDir}
redis: { url: "${parts.redis}", prefix: ${parts.prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${parts.feed}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms }, budget: { unitsPerDay: 1000000, requestsPerMinute: 240 } } }
sinks:
  hook: { type: webhook, url: "${parts.hook.url}", ${common} }
  ops: { type: slack, url: "${parts.slack.url}", ${common} }
  desk: { type: email, smtp: "${parts.smtp.url}", startTls: "off", from: Alerts <alerts@example.com>, to: [desk@example.com], ${common} }
routes: [{ sinks: [hook, ops, desk] }]
`
}

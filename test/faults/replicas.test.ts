import { createConnection } from 'node:net'
import { createInterface } from 'node:readline'
import type { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { defaultTuning } from '../../src/delivery/settings.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { bridgeConfig, impatient, leftToSend, metric } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { onTestFinished, sideBySide } from '../support/finished.ts'
import { hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { type Program, startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Several processes on one Redis; leases and locks last as long as they really do. */

const redis = useRedis({ aof: true })
const pollEveryMs = 500
const sendMs = 400
/** Longer than a lease (15 s). */
const frozenMs = process.env['LONG'] === '1' ? 60_000 : 17_000

it.concurrent.for([
  { fault: 'frozen beyond its lease', count: 3 },
  { fault: 'killed', count: 2 },
] as const)(
  'replicas of which the poller is $fault: another polls, nothing is lost, no unit is spent twice',
  { timeout: frozenMs + 120_000 },
  ({ fault, count }, context) =>
    sideBySide(async () => {
      const row = failureRow('One of several replicas is killed, or frozen')
      const prefix = freshPrefix()
      const client = redis.client()
      const sandbox = await startSandbox({ requestsPerMinute: 1_000_000, unitsPerDay: 1_000_000 })
      const hook = await startWebhookReceiver()
      const shown = showing(sandbox)
      const log = logOf('hook', hook, { status: 204, afterMs: sendMs })
      const config = writeConfig(
        bridgeConfig({
          ...{ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } },
          every: `${pollEveryMs}ms`,
          sink: `${impatient}, concurrency: 4`,
        }),
      )
      const replicas = Array.from({ length: count }, () => startProgram(['run', '--config', config]))
      for (const each of replicas) await each.logged('started', 30_000)
      const startMs = performance.now()
      const steady = setInterval(() => shown.fire(), 150)
      try {
        await until('somebody polls', () => replicas.some((each) => polls(each) > 2))
        const victim = await poller(replicas)
        const others = replicas.filter((each) => each !== victim)
        await until('alerts are under way', async () => (await active(client, prefix)).length > 3)
        victim.kill(fault === 'killed' ? 'SIGKILL' : 'SIGSTOP')
        const faultMs = performance.now()
        const underWay = await active(client, prefix)
        expect(underWay.length).toBeGreaterThan(0)
        const [calls, before] = [polls(victim), others.map(polls)]
        const [polledMs, sentMs] = await Promise.all([
          msUntil(faultMs, 'another one polls', () =>
            others.some((each, index) => polls(each) > (before[index] ?? 0)),
          ),
          msUntil(faultMs, 'what was under way is delivered', async () => {
            const ended = underWay.map(({ id }) => client.zscore(`${queuePrefix(prefix)}:hook:completed`, id))
            return (await Promise.all(ended)).every((score) => score !== null)
          }),
        ])
        // At worst the lock was renewed right before, and a look for such jobs has just been left out.
        const { lockMs, stalledIntervalMs, takeOverMs } = defaultTuning
        const atWorstMs = lockMs + 2 * stalledIntervalMs + takeOverMs + sendMs
        await row.heals(
          'polling and what was being sent go on after 10–25 s, by lease and locks',
          Math.max(polledMs, sentMs, atWorstMs),
        )
        if (fault !== 'killed') {
          await until('its lease has long run out', () => performance.now() - faultMs > frozenMs, frozenMs)
          victim.kill('SIGCONT')
          await until('it notices', () => victim.lines().some(({ msg }) => msg === 'poller.lease_lost'))
        }
        const next = others.map(polls)
        await until('polls go on', () => others.some((each, index) => polls(each) > (next[index] ?? 0) + 3))
        await row.kept('another polls', () => {
          expect(others.filter((each, index) => polls(each) > (before[index] ?? 0))).toHaveLength(1)
          expect(polls(victim) - calls).toBeLessThanOrEqual(1)
        })
        clearInterval(steady)
        await until('everything arrives', () => hasAll(shown, log), 20_000)
        await until('nothing is left', async () => (await leftToSend(client, prefix, ['hook'])) === 0, 40_000)
        const { missing, unknown, doubled, misnamed } = judge(shown, log, {
          cutOff: new Map(underWay.map(({ mark }) => [mark, 1])),
        })
        await row.kept('everything', () => expect([missing, unknown, misnamed]).toEqual([[], [], []]))
        await row.twice('what it was sending at that moment', () => expect(doubled).toEqual([]))
        await row.kept('no unit is spent twice', async () => {
          // At the pace of one, with a call more for each who took over.
          const elapsedMs = performance.now() - startMs
          expect(sandbox.requests.length).toBeLessThanOrEqual(Math.ceil(elapsedMs / pollEveryMs) + 3)
          // What was reserved right before the fault may not have been asked for.
          const now = await poller(others)
          await until('each call was counted, once', async () =>
            [0, 1].includes((await unitsUsed(now)) - sandbox.unitsUsed),
          )
        })
      } finally {
        clearInterval(steady)
      }
    })(context),
)

it.concurrent(
  'a bridge at rest sends Redis at most 60 commands a minute for a source, and 30 for a sink, also where it has operators',
  { timeout: 120_000 },
  sideBySide(async () => {
    const prefix = freshPrefix()
    const sandbox = await startSandbox({ history: 0 })
    const hook = await startWebhookReceiver()
    const sinks = { a: hook.url, b: hook.url, c: hook.url }
    const text = bridgeConfig({ redis, prefix, feed: sandbox.url, sinks, every: '10m' })
    const { lines } = await startApp(`${text}operators: [a]\n`)
    await until('it has polled', () => lines.some(({ msg }) => msg === 'poll.done'))
    const monitor = createConnection(redis.socketPath, () => monitor.write('MONITOR\r\n'))
    onTestFinished(() => void monitor.destroy())
    // What scripts call is not sent. The tests beside this one have other prefixes.
    const isOwn = (line: string) => line.includes(prefix) && !line.includes(' lua] ')
    const sentMs: number[] = []
    createInterface(monitor).on('line', (line) => {
      if (isOwn(line)) sentMs.push(performance.now())
    })
    const beganMs = performance.now()
    const mostAMinute = 60 + 30 * Object.keys(sinks).length
    const lately = () => sentMs.filter((atMs) => atMs > performance.now() - 60_000).length
    // It still starts when it has polled for the first time: at rest it is some time later, on a slow machine.
    const isAtRest = () => performance.now() - beganMs > 60_000 && lately() <= mostAMinute
    await until('a minute with so few commands', isAtRest, 100_000)
    expect(lately()).toBeGreaterThan(60)
  }),
)

async function msUntil(
  fromMs: number,
  what: string,
  condition: () => boolean | Promise<boolean>,
): Promise<number> {
  await until(what, condition, 60_000)
  return performance.now() - fromMs
}

async function unitsUsed(program: Program): Promise<number> {
  const { address } = await program.logged('listening')
  return (await metric(String(address), 'alert_bridge_budget_units_used{source="main"}')) || 0
}

function polls(program: Program): number {
  return program.lines().filter(({ msg }) => msg === 'poll.done').length
}

/** Who polls now. */
async function poller(programs: readonly Program[]): Promise<Program> {
  const before = programs.map(polls)
  const now = () => programs.find((each, index) => polls(each) > (before[index] ?? 0))
  await until('one polls', () => now() !== undefined)
  const found = now()
  if (!found) throw new Error('nobody polls')
  return found
}

async function active(client: Redis, prefix: string): Promise<{ id: string; mark: string }[]> {
  const queue = `${queuePrefix(prefix)}:hook`
  const ids = await client.lrange(`${queue}:active`, 0, -1)
  return Promise.all(
    ids.map(async (id) => {
      const data = await client.hget(`${queue}:${id}`, 'data')
      return { id, mark: /A\d{5}/.exec(data ?? '')?.[0] ?? id }
    }),
  )
}

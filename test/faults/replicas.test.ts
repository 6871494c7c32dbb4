import type { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { leaseKey, queuePrefix } from '../../src/store/keys.ts'
import { until } from '../support/app.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { type Program, startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { impatient, leftToSend, metric, sceneConfig } from '../support/scene.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Several processes on one Redis; while one is frozen, leases and locks last as long as they really do. */

const redis = useRedis({ aof: true })
const pollEveryMs = 500
/** Longer than a lease (15 s) and than a lock with the look for stalled jobs. */
const frozenMs = 18_000

it('three replicas of which the poller is frozen beyond its lease, and the next one killed: one polls, nothing is lost, no unit is spent twice', {
  timeout: 120_000,
}, async () => {
  const prefix = freshPrefix()
  const client = redis.client()
  const sandbox = await startSandbox({ requestsPerMinute: 1_000_000, unitsPerDay: 1_000_000 })
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, { status: 204, afterMs: 150 })
  const config = writeConfig(
    sceneConfig({
      ...{ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } },
      every: `${pollEveryMs}ms`,
      sink: `${impatient}, concurrency: 4`,
    }),
  )
  const replicas = [1, 2, 3].map(() => startProgram(['run', '--config', config]))
  for (const each of replicas) await each.logged('started', 20_000)
  const startMs = performance.now()
  const steady = setInterval(() => shown.fire(), 150)
  const cutOff = new Map<string, number>()
  const note = async () => {
    for (const mark of await beingSent(client, prefix)) cutOff.set(mark, (cutOff.get(mark) ?? 0) + 1)
  }
  try {
    await until('somebody polls', () => replicas.some((each) => polls(each) > 2))
    await until('alerts are under way', async () => (await beingSent(client, prefix)).length > 0)
    const frozen = busiest(replicas)
    frozen.kill('SIGSTOP')
    await note()
    const frozenAtMs = performance.now()
    const others = replicas.filter((each) => each !== frozen)
    const before = others.map(polls)
    await until(
      'another one polls',
      () => others.some((each, index) => polls(each) > (before[index] ?? 0)),
      25_000,
    )
    await until('the lease has long run out', () => performance.now() - frozenAtMs > frozenMs, frozenMs)
    const calls = polls(frozen)
    frozen.kill('SIGCONT')
    await until('it notices', () => frozen.lines().some(({ msg }) => msg === 'poller.lease_lost'))
    expect(polls(frozen) - calls).toBeLessThanOrEqual(1)

    const next = busiest(others)
    next.kill('SIGKILL')
    await next.ended()
    await note()
    // The lease of the dead one, as if its 15 seconds had passed; how long that takes was seen above.
    await client.del(leaseKey(prefix, 'main'))
    const rest = replicas.filter((each) => each !== next)
    const then = rest.map(polls)
    await until(
      'one of the others polls',
      () => rest.some((each, index) => polls(each) > (then[index] ?? 0)),
      25_000,
    )
    await until('and goes on', () => rest.some((each, index) => polls(each) > (then[index] ?? 0) + 3))
    expect(rest.filter((each, index) => polls(each) > (then[index] ?? 0))).toHaveLength(1)
    clearInterval(steady)
    await until('everything arrives', () => hasAll(shown, log), 20_000)
    await until(
      'nothing is left to send',
      async () => (await leftToSend(client, prefix, ['hook'])) === 0,
      40_000,
    )
    expect(judge(shown, log, { cutOff })).toEqual(clean)

    // At the pace of one, with a call more for each who took over.
    const elapsedMs = performance.now() - startMs
    expect(sandbox.requests.length).toBeLessThanOrEqual(Math.ceil(elapsedMs / pollEveryMs) + 3)
    // Only who polled has counted.
    const counted = await Promise.all(rest.map(unitsUsed))
    expect(Math.abs(sandbox.unitsUsed - Math.max(...counted))).toBeLessThanOrEqual(2)
  } finally {
    clearInterval(steady)
  }
})

async function unitsUsed(program: Program): Promise<number> {
  const { address } = await program.logged('listening')
  return (await metric(String(address), 'alert_bridge_budget_units_used{source="main"}')) || 0
}

function polls(program: Program): number {
  return program.lines().filter(({ msg }) => msg === 'poll.done').length
}

function busiest(programs: readonly Program[]): Program {
  const [first] = [...programs].sort((a, b) => lastPoll(b) - lastPoll(a))
  if (!first) throw new Error('there is no program')
  return first
}

function lastPoll(program: Program): number {
  const times = program
    .lines()
    .flatMap(({ msg, time }) => (msg === 'poll.done' ? [Date.parse(String(time)) || Number(time)] : []))
  return times.at(-1) ?? 0
}

async function beingSent(client: Redis, prefix: string): Promise<string[]> {
  const queue = `${queuePrefix(prefix)}:hook`
  const ids = await client.lrange(`${queue}:active`, 0, -1)
  const data = await Promise.all(ids.map((id) => client.hget(`${queue}:${id}`, 'data')))
  return data.flatMap((text) => /A\d{5}/.exec(text ?? '')?.[0] ?? [])
}

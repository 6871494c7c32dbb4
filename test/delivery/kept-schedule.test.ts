import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { pausesMs, type RetryPolicy } from '../../src/delivery/backoff.ts'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { useRedis } from '../support/redis.ts'
import {
  type ReceiverAnswer,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'
import { jobs, rig, until } from './rig.ts'

/**
 * The promise of a sink's schedule, over random receivers: none of them may make an alert end before it was tried as
 * often, and for as long, as its policy says; and an alert is delivered if the receiver takes it within that time.
 */

const server = useRedis()
const retry: RetryPolicy = { attempts: 4, initialDelayMs: 150, maxDelayMs: 3_600_000 }
/** With each pause as short as its spread makes it. */
const scheduleMsMin = 0.8 * pausesMs(retry).reduce((sum, pauseMs) => sum + pauseMs, 0)
/** Well within the schedule of an alert whose first attempt is the first of all. */
const healedAfterMs = scheduleMsMin - 300
const runs = process.env['LONG'] === '1' ? 200 : 12

interface Scenario {
  readonly manner: Manner
  readonly replicas: number
  readonly alerts: number
  readonly concurrency: number
  /** One sender is stopped, and another one started in its place. */
  readonly restartAfterMs: number
  /** The receiver takes everything while there is still time. */
  readonly heals: boolean
  readonly luck: number
}

type Manner =
  | { readonly kind: 'share'; readonly taken: number; readonly of: number }
  | { readonly kind: 'overloaded'; readonly gapMs: number }
  | { readonly kind: 'bursts'; readonly wellMs: number; readonly illMs: number }
  | { readonly kind: 'rate'; readonly max: number; readonly perMs: number; readonly told: boolean }

const manner: fc.Arbitrary<Manner> = fc.oneof(
  fc.record({
    kind: fc.constant('share' as const),
    taken: fc.integer({ min: 0, max: 3 }),
    of: fc.constant(4),
  }),
  fc.record({ kind: fc.constant('overloaded' as const), gapMs: fc.integer({ min: 20, max: 200 }) }),
  fc.record({
    kind: fc.constant('bursts' as const),
    wellMs: fc.integer({ min: 10, max: 200 }),
    illMs: fc.integer({ min: 100, max: 900 }),
  }),
  fc.record({
    kind: fc.constant('rate' as const),
    max: fc.integer({ min: 1, max: 5 }),
    perMs: fc.integer({ min: 50, max: 300 }),
    told: fc.boolean(),
  }),
)

const scenario: fc.Arbitrary<Scenario> = fc.record({
  manner,
  replicas: fc.integer({ min: 1, max: 2 }),
  alerts: fc.integer({ min: 3, max: 20 }),
  concurrency: fc.constantFrom(1, 5, 20),
  restartAfterMs: fc.integer({ min: 100, max: 1_800 }),
  heals: fc.boolean(),
  luck: fc.integer(),
})

it('no receiver, restart or replica makes an alert end before its schedule, and what heals in time gets everything', {
  timeout: 60_000 * Math.ceil(runs / 12),
}, async () => {
  const seed = Number(process.env['SEED'] ?? 1)
  const scenarios = fc.sample(scenario, { seed, numRuns: runs })
  for (let from = 0; from < runs; from += 12) {
    const faults = await Promise.all(
      scenarios.slice(from, from + 12).map(async (each) => ({ ...each, faults: await faultsOf(each) })),
    )
    expect(faults.filter((each) => each.faults.length > 0)).toEqual([])
  }
})

/** What a run of the scenario has shown that may not be. */
async function faultsOf({ manner, replicas, alerts, concurrency, ...more }: Scenario): Promise<string[]> {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.stop())
  const startMs = performance.now()
  const answer = answersOf(manner, more.luck)
  receiver.answerWith(() =>
    more.heals && performance.now() - startMs > healedAfterMs ? { status: 204 } : answer(),
  )
  const { queues, sender } = rig(server, ['hook'])
  const start = () =>
    sender([hookOf(receiver)], {
      settings: { retry, concurrency },
      tuning: { faultsToOpen: 3, probePauseMsMax: 200 },
    })
  const senders = Array.from({ length: replicas }, start)
  const all = jobs('hook', 1, alerts)
  // Twelve of these begin at the same time: the first try may be too much for a busy machine.
  await until('stored', () =>
    queues.enqueue(all).then(
      () => true,
      () => false,
    ),
  )
  await new Promise((resolve) => setTimeout(resolve, more.restartAfterMs))
  await senders[0]?.stop(500)
  start()
  const queue = queues.queue('hook')
  await until(
    `every alert ends under ${JSON.stringify({ manner, replicas, alerts, concurrency, ...more })}`,
    async () => (await queue.getCompletedCount()) + (await queue.getFailedCount()) === alerts,
    45_000,
  )
  const dead = await queue.getFailed()
  const early = dead.flatMap(({ id, finishedOn = 0, failedReason }) => {
    const own = receiver.requests.filter(({ headers }) => headers['webhook-id'] === id)
    const tookMs = finishedOn - (own[0]?.atMs ?? finishedOn)
    return own.length >= retry.attempts && tookMs >= scheduleMsMin - 5
      ? []
      : [`${id} after ${own.length} attempts and ${tookMs} ms: ${failedReason}`]
  })
  return more.heals ? [...new Set([...early, ...dead.map(({ id }) => `${id} is dead`)])] : early
}

function hookOf({ url }: WebhookReceiver) {
  const config = sinkConfigSchema.parse({ type: 'webhook', url, allowPrivateNetworks: true })
  return createSink('hook', config, { display: { timeZone: 'UTC', calendar: 'both', language: 'en' } })
}

const busy: ReceiverAnswer = { status: 503, afterMs: 2 }
const taken: ReceiverAnswer = { status: 204, afterMs: 2 }

function answersOf(manner: Manner, luck: number): () => ReceiverAnswer {
  const startMs = performance.now()
  const random = seeded(luck)
  let lastMs = 0
  let window = { startMs: 0, count: 0 }
  return () => {
    const nowMs = performance.now()
    switch (manner.kind) {
      case 'share':
        return random() < manner.taken / manner.of ? taken : busy
      case 'overloaded': {
        const well = nowMs - lastMs > manner.gapMs
        lastMs = nowMs
        return well ? taken : busy
      }
      case 'bursts':
        return (nowMs - startMs) % (manner.wellMs + manner.illMs) >= manner.illMs ? taken : busy
      case 'rate': {
        if (nowMs - window.startMs > manner.perMs) window = { startMs: nowMs, count: 0 }
        window.count += 1
        if (window.count <= manner.max) return taken
        return { status: 429, afterMs: 2, ...(manner.told ? { headers: { 'retry-after': '1' } } : {}) }
      }
      default:
        return manner satisfies never
    }
  }
}

/** Park and Miller's generator: the same numbers for the same seed. */
function seeded(seed: number): () => number {
  let state = (Math.abs(seed) % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { sourceView } from '../../src/app/operator-api/views.ts'
import { createFeedClient } from '../../src/feed/client.ts'
import type { IntakeDeps } from '../../src/intake/intake.ts'
import { createProcessState, runPoll } from '../../src/intake/poll.ts'
import { runSweep } from '../../src/intake/sweep.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import type { PollerDeps } from '../../src/poller/settings.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { createWalkState } from '../../src/store/walk/walk-state.ts'
import { type PollerRig, pollerRig } from '../support/poller.ts'
import { testFolder } from '../support/process.ts'
import { startRedis } from '../support/redis.ts'

/** The loop with the real walk: what the two promise together. */
describe('the loop and the walk', () => {
  it('catch up over a crash of Redis and a spell of 429, a replica that ends, and news in between', async () => {
    const server = await startRedis({ aof: true })
    onTestFinished(() => server.dispose())
    const rig = await pollerRig({
      redis: server.client(),
      sandbox: { history: 1_500 },
      limits: { leaseTtlMs: 1_000, minIntervalMs: 10 },
    })
    const handed = new Map<number, number>()
    const first = rig.replica(server.client(), walking(rig, server.client(), handed, 4))
    await vi.waitFor(() => expect(handed.size).toBeGreaterThan(300), soon)
    rig.sandbox.fireMany(20)
    await server.kill9()
    rig.sandbox.fault({ kind: 'status', status: 429, retryAfter: '1' })
    await server.start()
    await vi.waitFor(() => expect(handed.size).toBeGreaterThan(700), soon)
    rig.replica(server.client(), walking(rig, server.client(), handed, 4))
    await first.stop()
    rig.sandbox.fireMany(5)
    await vi.waitFor(() => expect(handed.size).toBe(1_525), soon)
    // A crash may hand over the rows of one page again; jobs of that id then exist already.
    const again = [...handed.values()].filter((times) => times > 1).length
    expect(again).toBeLessThanOrEqual(200)
  }, 40_000)

  it('leave nothing for a poll to pay twice: a caught-up source costs a unit a poll', async () => {
    const server = await startRedis()
    onTestFinished(() => server.dispose())
    const rig = await pollerRig({
      redis: server.client(),
      sandbox: { history: 250 },
      limits: { minIntervalMs: 10 },
    })
    const handed = new Map<number, number>()
    rig.replica(server.client(), walking(rig, server.client(), handed))
    await vi.waitFor(() => expect(handed.size).toBe(250), soon)
    await vi.waitFor(() => expect(rig.reports.length).toBeGreaterThan(4), soon)
    expect(rig.reports.slice(0, 4).map(({ pages }) => pages)).toEqual([3, 1, 1, 1])
    expect([...handed.values()].every((times) => times === 1)).toBe(true)
  })
})

it('asks again soon for a page beneath the first that failed once, however far apart polls are', async () => {
  const server = await startRedis()
  onTestFinished(() => server.dispose())
  const rig = await pollerRig({ redis: server.client(), sandbox: { history: 150 }, everyMs: 120_000 })
  const handed = new Map<number, number>()
  rig.sandbox.fault({ kind: 'status', status: 500, page: 2, times: 1 })
  rig.replica(server.client(), walking(rig, server.client(), handed))
  await vi.waitFor(() => expect(handed.size).toBe(150), soon)
})

it("takes nothing of another account's feed where the token is changed between two pages of a catch-up", async () => {
  const server = await startRedis()
  onTestFinished(() => server.dispose())
  const tokens = [{ value: 'first-token' }, { value: 'second-token' }]
  const rig = await pollerRig({ redis: server.client(), sandbox: { history: 150, firstId: 10_000, tokens } })
  const tokenFile = join(testFolder(), 'token')
  writeFileSync(tokenFile, 'first-token')
  const client = createFeedClient({ source: 'main', baseUrl: rig.url, token: Secret.fromFile(tokenFile) })
  onTestFinished(() => client.close())
  const handed = new Map<number, number>()
  const feed: PollerDeps['feed'] = {
    ...client,
    async deliveries(page, signal, tokenFingerprint) {
      if (page === 3 && handed.size === 350) {
        writeFileSync(tokenFile, 'second-token')
        rig.sandbox.switchAccount('another', 300)
      }
      return client.deliveries(page, signal, tokenFingerprint)
    },
  }
  const run = rig.replica(server.client(), { ...walking(rig, server.client(), handed, 2), feed })
  await vi.waitFor(() => expect(handed.size).toBe(150), soon)
  rig.sandbox.fireMany(500)
  await vi.waitFor(() => expect(run.poller.status().state).toBe('stopped'), soon)
  expect(handed.size).toBe(350)
  await run.stop()
})

describe('a page that fails for good', () => {
  it('is why a source stays behind, and the line of its poll says so, with what the API answered', async () => {
    const server = await startRedis()
    onTestFinished(() => server.dispose())
    const rig = await pollerRig({ redis: server.client(), sandbox: { history: 0 }, everyMs: 50 })
    const handed = new Map<number, number>()
    const run = rig.replica(server.client(), walking(rig, server.client(), handed))
    rig.sandbox.fire()
    await vi.waitFor(() => expect(handed.size).toBe(1), soon)
    rig.sandbox.fault({ kind: 'status', status: 502, page: 2, times: 0 })
    rig.sandbox.fireMany(150)
    const failed = () => rig.captured.with('poll.done').filter(({ reason }) => reason === 'failed')
    await vi.waitFor(() => expect(failed().length).toBeGreaterThan(0), soon)
    expect(failed()[0]).toMatchObject({ level: 'warn', behind: true, error: expect.stringContaining('502') })
    // So does the status, until a poll reads that page; one that found the first page as it was says nothing of it.
    const day = { key: '', startMs: 0, endMs: 86_400_000 }
    const about = { name: 'main', here: true, fault: null, lag: null, tooThin: () => [], day }
    const shown = () => sourceView({ ...about, status: run.poller.status(), nowMs: Date.now() })
    await vi.waitFor(() => expect(run.poller.status().state).toBe('waiting'), soon)
    expect(shown()).toMatchObject({ state: 'catching_up', reason: expect.stringContaining('502') })
    rig.sandbox.clearFaults()
    rig.sandbox.fire()
    await vi.waitFor(() => expect(shown()).toMatchObject({ state: 'running', reason: null }), soon)
  })

  it('keeps the first one from nothing, and is asked for less and less often', async () => {
    const server = await startRedis()
    onTestFinished(() => server.dispose())
    const rig = await pollerRig({ redis: server.client(), sandbox: { history: 0 }, everyMs: 50 })
    const handed = new Map<number, number>()
    const run = rig.replica(server.client(), walking(rig, server.client(), handed))
    rig.sandbox.fire()
    await vi.waitFor(() => expect(handed.size).toBe(1), soon)
    rig.sandbox.fault({ kind: 'status', status: 500, page: 2, times: 0 })
    rig.sandbox.fireMany(150)
    const failed = () => rig.sandbox.requests.filter(({ status }) => status === 500)
    await vi.waitFor(() => expect(failed().length).toBe(4), soon)
    const calls = rig.sandbox.requests.length
    for (let news = 1; news <= 10; news += 1) {
      rig.sandbox.fire()
      await vi.waitFor(() => expect(handed.size).toBe(101 + news), soon)
    }
    expect(rig.sandbox.requests.slice(calls).map(({ status }) => status)).not.toContain(500)
    expect(run.poller.status()).toMatchObject({ behind: true, lastError: expect.anything() })
    rig.sandbox.clearFaults()
    await vi.waitFor(() => expect(handed.size).toBe(161), soon)
  })
})

const soon = { timeout: 20_000, interval: 20 }

/** Everything from the beginning, for one sink whose queue is a count of what it was given. */
function walking(
  { prefix, captured, metrics }: PollerRig,
  redis: RedisClient,
  handed: Map<number, number>,
  pagesMax = 25,
): Pick<PollerDeps, 'poll' | 'sweep'> {
  const source = 'main'
  const state = createWalkState({ redis, prefix, source, seenWindowMs: 30 * 86_400_000 })
  const enqueue = async (jobs: readonly DeliveryJob[]) => {
    for (const { alert } of jobs) handed.set(alert.id, (handed.get(alert.id) ?? 0) + 1)
  }
  const intake: IntakeDeps = {
    queues: { enqueue },
    prepareAssign: async () => async (alerts) =>
      alerts.map(() => ({ sinks: [{ sink: 'ops', routes: [] }], withheld: [] })),
    targets: new Map(),
    onHandled: () => {},
  }
  const options = { source, startFrom: 'beginning', processState: createProcessState(systemClock) } as const
  const depsWith = { state, inForce: { intake }, clock: systemClock, log: captured.log, metrics }
  return {
    poll: (readPage) => runPoll({ ...depsWith, readPage }, { ...options, pagesMax }),
    sweep: (readPage, pages) => runSweep({ ...depsWith, readPage }, { ...options, pagesMax: pages }),
  }
}

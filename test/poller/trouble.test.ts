import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createFeedClient } from '../../src/feed/client.ts'
import { Secret } from '../../src/lib/secret.ts'
import { sandboxToken } from '../../src/sandbox/sandbox.ts'
import type { Metrics } from '../../src/telemetry/metrics.ts'
import { passingClock } from '../support/clock.ts'
import {
  callsDuring,
  pollerRig,
  pollOnePage,
  pollResult,
  type RigOptions,
  untilCalls,
} from '../support/poller.ts'
import { testFolder } from '../support/process.ts'
import { startRedis, useRedis } from '../support/redis.ts'

const server = useRedis()
const today = { key: 'today', startMs: 0, endMs: Number.POSITIVE_INFINITY }
const soon = { timeout: 10_000, interval: 5 }
const rig = (options: Omit<RigOptions, 'redis'> = {}) => pollerRig({ redis: server.client(), ...options })

describe('a failing feed', () => {
  it.each<Parameters<Awaited<ReturnType<typeof rig>>['sandbox']['fault']>[0]>([
    { kind: 'status', status: 503, times: 2 },
    { kind: 'html', times: 2 },
    { kind: 'cut', times: 2 },
  ])('of $kind is tried again, and named', async (fault) => {
    const { replica, redis, sandbox, reports } = await rig()
    sandbox.fault(fault)
    const { poller } = replica(redis)
    // Good polls go on: on a busy machine several are done before anybody looks.
    await vi.waitFor(
      () => expect(reports.slice(0, 3).map(({ ok }) => ok)).toEqual([false, false, true]),
      soon,
    )
    expect(poller.status().lastError?.code).toMatch(/server_error|not_json|connection_lost/)
  })

  it('is asked less and less often', async () => {
    const { replica, redis, sandbox } = await rig({ everyMs: 0, restsAfterFailures: true })
    sandbox.fault({ kind: 'status', status: 500, times: 0 })
    const clock = passingClock()
    const { poller } = replica(redis, { clock })
    const pausesMs: number[] = []
    for (let calls = 1; calls <= 6; calls += 1) {
      await untilCalls(sandbox, calls)
      await vi.waitFor(() => expect(poller.status().state).toBe('waiting'), soon)
      const { nextPollAtMs, lastError } = poller.status()
      const pauseMs = (nextPollAtMs ?? 0) - (lastError?.atMs ?? 0)
      pausesMs.push(pauseMs)
      if (calls < 6) clock.pass(pauseMs)
    }
    expect(pausesMs).toEqual([2_000, 2_000, 2_000, 4_000, 8_000, 16_000])
    expect(await callsDuring(sandbox, 300)).toBe(0)
    expect(poller.health()).toEqual({ ok: true })
  })

  it('with a token that is refused stops at a slow pace, says so once, and resumes when it is right', async () => {
    const { replica, redis, sandbox, captured } = await rig({
      everyMs: 0,
      limits: { stoppedIntervalMs: 150 },
    })
    sandbox.setTokenState('revoked')
    const { poller } = replica(redis)
    await untilCalls(sandbox, 3)
    const [first, second] = sandbox.requests
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(140)
    await vi.waitFor(() => expect(poller.status().state).toBe('stopped'), soon)
    expect(poller.status().reason).toMatch(/does not accept the token/)
    expect(poller.health()).toEqual({ ok: true })
    expect(captured.with('poller.state')).toMatchObject([{ level: 'error', state: 'stopped' }])
    sandbox.setTokenState('valid')
    await vi.waitFor(
      () => expect(captured.with('poller.resumed')).toMatchObject([{ after: 'stopped' }]),
      soon,
    )
    expect(captured.with('poller.state')).toHaveLength(1)
  })

  it('with a token that is refused is stopped also after a try that the minute refused: nothing was asked', async () => {
    const { replica, redis, sandbox, ledger, metrics } = await rig({ limits: { stoppedIntervalMs: 50 } })
    sandbox.setTokenState('revoked')
    let refusals = 0
    const { poller } = replica(redis, {
      ledger: {
        ...ledger,
        async reserve(request) {
          if (sandbox.requests.length === 0 || refusals === 3) return ledger.reserve(request)
          refusals += 1
          const retryAtMs = Date.now() + (refusals === 3 ? 60_000 : 20)
          return { ok: false, limit: 'minute', held: false, retryAtMs, unitsUsed: 1 }
        },
      },
    })
    await vi.waitFor(() => expect(refusals).toBe(3), soon)
    await vi.waitFor(() => expect(poller.status().nextPollAtMs).toBeGreaterThan(Date.now() + 50_000), soon)
    expect(poller.status()).toMatchObject({ state: 'stopped', reason: expect.stringMatching(/the token/) })
    expect(await statesOf(metrics)).toEqual({ stopped: 1 })
    expect(sandbox.requests).toHaveLength(1)
  })

  it('with a token that was refused is tried on request as soon as the minute has room', async () => {
    const { replica, redis, sandbox, ledger } = await rig({ everyMs: 60_000 })
    sandbox.setTokenState('revoked')
    let isFull = false
    const { poller } = replica(redis, {
      ledger: {
        ...ledger,
        async reserve(request) {
          if (!isFull) return ledger.reserve(request)
          isFull = false
          return { ok: false, limit: 'minute', held: false, retryAtMs: Date.now() + 100, unitsUsed: 1 }
        },
      },
    })
    await vi.waitFor(() => expect(poller.status().state).toBe('stopped'), soon)
    sandbox.setTokenState('valid')
    isFull = true
    poller.pollNow()
    await untilCalls(sandbox, 2)
    await vi.waitFor(() => expect(poller.status().state).toBe('waiting'), soon)
  })

  it("that shows a stranger's rows stops", async () => {
    const { replica, redis } = await rig()
    const { poller } = replica(redis, {
      poll: async (readPage) => ({ ...(await pollOnePage(readPage)), ok: false, stopped: 'foreign_feed' }),
    })
    await vi.waitFor(() => expect(poller.status()).toMatchObject({ state: 'stopped' }), soon)
    expect(poller.status().reason).toMatch(/another feed/)
  })
})

describe('a token that stands in a file', () => {
  it('which is empty for a moment is read again soon, and costs no unit meanwhile', async () => {
    const { replica, redis, sandbox, url, ledger, metrics } = await rig()
    const clock = passingClock()
    const file = join(testFolder(), 'token')
    writeFileSync(file, `${sandboxToken}\n`)
    const feed = createFeedClient({ source: 'main', baseUrl: url, token: Secret.fromFile(file) })
    onTestFinished(() => feed.close())
    const { poller } = replica(redis, { feed, clock })
    await untilCalls(sandbox, 1)
    writeFileSync(file, '')
    await vi.waitFor(() => expect(poller.status().state).toBe('stopped'), soon)
    expect(poller.status().reason).toContain(file)
    expect(await statesOf(metrics)).toEqual({ stopped: 1 })
    const calls = sandbox.requests.length
    expect((await ledger.used(today)).used).toBe(calls)
    writeFileSync(file, sandboxToken)
    clock.pass(10_000)
    await untilCalls(sandbox, calls + 1)
    await vi.waitFor(() => expect(poller.status().state).not.toBe('stopped'), soon)
    expect(await statesOf(metrics)).toEqual({ polling: 1 })
  })
})

/** The states of the source that the metrics show. */
async function statesOf({ sourceState }: Metrics) {
  const { values } = await sourceState.get()
  return Object.fromEntries(
    values.filter(({ value }) => value !== 0).map(({ labels, value }) => [labels.state, value]),
  )
}

describe('several replicas', () => {
  it('poll as one, and another takes over when that one ends', async () => {
    const { replica, redis, sandbox } = await rig({ limits: { leaseTtlMs: 6_000 } })
    const first = replica(redis)
    await untilCalls(sandbox, 1)
    const second = replica(server.client())
    await vi.waitFor(() => expect(second.poller.status().state).toBe('standby'), soon)
    expect(second.poller.health()).toEqual({ ok: true })
    expect(second.poller.status().reason).toMatch(
      /^another replica polls \(.+, process \d+, running since .+\); its lease ends at .+ unless it is renewed$/,
    )
    await first.stop()
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 1)
    expect(second.poller.status().state).not.toBe('standby')
  })

  it('of which one that polls no more leaves what the other knows better out of its metrics', async () => {
    const { replica, redis, sandbox, prefix, metrics } = await rig()
    const { poller } = replica(redis)
    const shown = async () => {
      const { budgetUnitsUsed, budgetUnitsLearned, budgetReset, lastPoll, nextPoll } = metrics
      const gauges = [budgetUnitsUsed, budgetUnitsLearned, budgetReset, lastPoll, nextPoll]
      return (await Promise.all(gauges.map((gauge) => gauge.get()))).map(({ values }) => values.length)
    }
    await untilCalls(sandbox, 2)
    expect(await shown()).toEqual([1, 1, 1, 1, 1])
    await redis.set(`{${prefix}}:lease:main`, 'another', 'PX', 60_000)
    await vi.waitFor(() => expect(poller.status().state).toBe('standby'), soon)
    expect(await shown()).toEqual([0, 0, 0, 0, 0])
  })

  it('of which one lost its lease in the middle of a walk read no further page', async () => {
    const { replica, redis, sandbox, prefix, captured } = await rig({ everyMs: 60_000 })
    const answers: unknown[] = []
    replica(redis, {
      async poll(readPage) {
        const result = await pollOnePage(readPage)
        if (answers.length > 0) return result
        await redis.set(`{${prefix}}:lease:main`, 'another', 'PX', 60_000)
        answers.push(await readPage(2, 'walk'))
        return pollResult({ reason: 'refused_lease', ok: true, pages: 1 })
      },
    })
    await vi.waitFor(() => expect(answers).toEqual([{ kind: 'refused', why: 'lease' }]), soon)
    expect(sandbox.requests).toHaveLength(1)
    await vi.waitFor(() => expect(captured.with('poller.lease_lost')).toHaveLength(1), soon)
  })
})

describe('Redis', () => {
  it('going away pauses the poller without a call, is told once, and its return ends the pause', async () => {
    const own = await startRedis({ aof: true })
    onTestFinished(() => own.dispose())
    const { replica, sandbox, captured } = await pollerRig({
      redis: own.client(),
      limits: { leaseTtlMs: 1_000 },
    })
    const { poller } = replica(own.client())
    await untilCalls(sandbox, 2)
    await own.kill9()
    await vi.waitFor(() => expect(poller.status().state).toBe('redis_down'), soon)
    expect(poller.health()).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/Redis is away/),
    })
    // What was reserved before the crash may still be on its way.
    await vi.waitFor(async () => expect(await callsDuring(sandbox, 100)).toBe(0), soon)
    expect(await callsDuring(sandbox, 1_500)).toBe(0)
    await own.start()
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 2)
    await vi.waitFor(() => expect(captured.with('poller.resumed')).toHaveLength(1), soon)
    expect(captured.with('poller.state')).toMatchObject([{ level: 'warn', state: 'redis_down' }])
    expect(poller.health()).toEqual({ ok: true })
  })

  it('that takes no more writes costs no units', async () => {
    const own = await startRedis()
    onTestFinished(() => own.dispose())
    const { replica, sandbox, redis } = await pollerRig({ redis: own.client() })
    const { poller } = replica(own.client())
    await untilCalls(sandbox, 1)
    await redis.config('SET', 'maxmemory', '1')
    await vi.waitFor(() => expect(poller.status().state).toBe('redis_down'), soon)
    expect(poller.status().reason).toMatch(/OOM/)
    expect(await callsDuring(sandbox, 500)).toBe(0)
    await redis.config('SET', 'maxmemory', '0')
    const calls = sandbox.requests.length
    await untilCalls(sandbox, calls + 1)
  })
})

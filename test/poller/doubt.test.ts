import { describe, expect, it } from 'vitest'
import { failingMsMax, lastingFailure } from '../../src/poller/health.ts'
import { PollerView } from '../../src/poller/status.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createSourceStatus } from '../../src/store/source/source-status.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { pollResult } from '../support/poller.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()
const hourMs = 3_600_000
const example = 'firedAt 1405-08-30 is no date'

function rig() {
  const at = { redis: server.client(), prefix: freshPrefix(), source: 'main' }
  const time = { nowMs: Date.parse('2026-11-21T09:00:00Z') }
  const captured = captureLog()
  const metrics = createMetrics({ version: 'test', node: process.version })
  const limits = { unitsPerDay: 1_000, minIntervalMs: 10 }
  const deps = {
    ...at,
    log: captured.log,
    metrics,
    clock: clockAt(() => time.nowMs),
    limits,
    onRules: () => [],
  }
  const open = () => new PollerView(deps, createSourceStatus(at))
  const told = () => captured.lines.filter(({ msg }) => String(msg).includes('1405')).length
  /** While no process runs: by Redis' clock the stored status is so old. */
  const pass = async (ms: number) => {
    time.nowMs += ms
    const { status } = sourceKeys(at.prefix, at.source)
    await at.redis.pexpire(status, (await at.redis.pttl(status)) - ms)
  }
  return { time, open, told, pass }
}

describe('firing times that cannot be believed', () => {
  it('are reported once with an example, and shown in the status, also over a restart', async () => {
    const { open, told, time } = rig()
    const view = open()
    for (const doubt of [example, null, 'firedAt 1405-08-31 is no date']) {
      view.polled(pollResult({ doubt }), null)
      time.nowMs += hourMs
    }
    expect(view.status.doubt?.text).toContain(`${example}: such rows count by their place in the feed`)
    expect(told()).toBe(1)
    await view.save()
    const next = open()
    await next.restore()
    next.polled(pollResult({ doubt: example }), null)
    expect(next.status.doubt?.text).toContain(example)
    expect(told()).toBe(1)
  })

  it('are no longer shown a day after the last one, and told again when they return', () => {
    const { open, told, time } = rig()
    const view = open()
    view.polled(pollResult({ doubt: example }), null)
    time.nowMs += 25 * hourMs
    view.polled(pollResult(), null)
    expect(view.status.doubt).toBeNull()
    view.polled(pollResult({ doubt: example }), null)
    expect(told()).toBe(2)
  })
})

it('a feed that fails at every poll is reported after a quarter of an hour, also where the bridge restarts meanwhile', async () => {
  const { open, time, pass } = rig()
  const failed = (view: PollerView) =>
    view.polled(pollResult({ ok: false, reason: 'failed' }), {
      ...{ atMs: time.nowMs, code: 'bad_shape', message: 'perPage is 50' },
    })
  for (let restart = 0; restart < 3; restart += 1) {
    const view = open()
    await view.restore()
    failed(view)
    expect(lastingFailure(view.status)).toBeUndefined()
    await view.save()
    await pass(failingMsMax / 3)
  }
  const last = open()
  await last.restore()
  failed(last)
  expect(lastingFailure(last.status)).toMatch(/^no poll has gone well for 15m.*: perPage is 50$/)
})

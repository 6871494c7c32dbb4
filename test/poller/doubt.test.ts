import { describe, expect, it } from 'vitest'
import { PollerView } from '../../src/poller/status.ts'
import { createSourceStatus } from '../../src/store/source-status.ts'
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
  const deps = { ...at, log: captured.log, metrics, clock: clockAt(() => time.nowMs), limits }
  const open = () => new PollerView(deps, createSourceStatus(at))
  const told = () => captured.lines.filter(({ msg }) => String(msg).includes('1405')).length
  return { time, open, told }
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

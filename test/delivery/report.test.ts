import { expect, it } from 'vitest'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { reportAttempt } from '../../src/delivery/attempt/report.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { alertOf } from '../sinks/samples.ts'

const dayMs = 86_400_000
const firedAtMs = Date.parse('2026-11-21T05:30:05Z')
const alert = alertOf({ firedAt: new Date(firedAtMs).toISOString() })

async function lagSeconds(
  job: Pick<DeliveryJob, 'requestedAtMs' | 'isHistory'>,
  nowMs: number,
): Promise<number> {
  const metrics = createMetrics({ version: '1.2.3', node: 'v24' })
  const report = {
    sink: 'ops',
    job: { alert, sink: 'ops', seenAtMs: firedAtMs, ...job },
    number: 1,
    result: 'delivered',
    nowMs,
  } as const
  reportAttempt(report, metrics, createLogger({ level: 'silent', destination: { write: () => {} } }))
  const { values } = await metrics.deliveryLag.get()
  return values.find(({ metricName }) => metricName?.endsWith('_sum'))?.value ?? Number.NaN
}

it('measures a delivery from when its alert fired', async () => {
  expect(await lagSeconds({}, firedAtMs + 4_000)).toBe(4)
})

it('measures what an operator sends again from the order, however old the alert is', async () => {
  const requestedAtMs = firedAtMs + 5 * dayMs
  expect(await lagSeconds({ requestedAtMs }, requestedAtMs + 3_000)).toBe(3)
})

it('measures none of what fired before its source was set up, but for what an operator sends again', async () => {
  const requestedAtMs = firedAtMs + 5 * dayMs
  expect(await lagSeconds({ isHistory: true }, requestedAtMs)).toBeNaN()
  expect(await lagSeconds({ isHistory: true, requestedAtMs }, requestedAtMs + 3_000)).toBe(3)
})

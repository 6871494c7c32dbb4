import { describe, expect, expectTypeOf, it } from 'vitest'
import type { DecisionReason } from '../../src/schedule/schedule.ts'
import { createMetrics, initialiseMetrics, pollReasons } from '../../src/telemetry/metrics.ts'
import { promtool } from '../support/promtool.ts'

const promised =
  `alert_bridge_build_info alert_bridge_upstream_requests_total alert_bridge_upstream_request_duration_seconds
alert_bridge_upstream_rate_limited_total alert_bridge_budget_units_limit alert_bridge_budget_units_used
alert_bridge_budget_units_total alert_bridge_budget_reset_timestamp_seconds alert_bridge_last_poll_timestamp_seconds
alert_bridge_next_poll_timestamp_seconds alert_bridge_detection_lag_seconds alert_bridge_delivery_lag_seconds
alert_bridge_alerts_seen_total alert_bridge_alerts_duplicate_total alert_bridge_alerts_quarantined_total
alert_bridge_alerts_unrouted_total alert_bridge_sends_total alert_bridge_send_duration_seconds alert_bridge_queue_jobs
alert_bridge_dead_letters alert_bridge_circuit_open alert_bridge_sink_stuck alert_bridge_config_reload_success_timestamp_seconds
alert_bridge_config_last_reload_successful`.split(/\s+/)

function exposed() {
  const metrics = createMetrics({ version: '1.2.3', node: 'v24' })
  initialiseMetrics(metrics, { sources: ['main'], sinks: ['ops'] })
  return metrics.registry.metrics()
}

describe('the metrics', () => {
  it.each(promised)('include %s from the first scrape', async (name) => {
    expect(await exposed()).toMatch(new RegExp(`^# TYPE ${name} `, 'm'))
  })

  it('stand at 0 for every label of a known source or sink', async () => {
    const text = await exposed()
    expect(text).toContain('alert_bridge_sends_total{sink="ops",result="expired"} 0')
    expect(text).toContain('alert_bridge_upstream_rate_limited_total{source="main",limit="budget"} 0')
    expect(text).toContain('alert_bridge_detection_lag_seconds_count{source="main"} 0')
    expect(text).toContain('alert_bridge_delivery_lag_seconds_count{source="main",sink="ops"} 0')
  })

  it('count polls by every reason that the schedule knows, and by no other', async () => {
    expectTypeOf<(typeof pollReasons)[number]>().toEqualTypeOf<DecisionReason>()
    const text = await exposed()
    for (const reason of pollReasons)
      expect(text).toContain(`alert_bridge_polls_total{source="main",reason="${reason}"} 0`)
  })

  it('pass promtool', async () => {
    expect(promtool(['check', 'metrics'], await exposed())).toBe('')
  })
})

import { beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import type { DecisionReason } from '../../src/schedule/schedule.ts'
import { createMetrics, pollReasons } from '../../src/telemetry/metrics.ts'
import { openMetricsText } from '../../src/telemetry/open-metrics.ts'
import { forgetOthers, initialiseMetrics } from '../../src/telemetry/series.ts'
import { fetchPrometheus, promtool } from '../support/promtool.ts'

beforeAll(...fetchPrometheus)

const promised =
  `alert_bridge_build_info alert_bridge_upstream_requests_total alert_bridge_upstream_request_duration_seconds
alert_bridge_upstream_rate_limited_total alert_bridge_budget_units_limit alert_bridge_budget_units_used
alert_bridge_budget_units_total alert_bridge_budget_reset_timestamp_seconds alert_bridge_last_poll_timestamp_seconds
alert_bridge_next_poll_timestamp_seconds alert_bridge_detection_lag_seconds alert_bridge_delivery_lag_seconds
alert_bridge_alerts_seen_total alert_bridge_alerts_duplicate_total alert_bridge_alerts_quarantined_total
alert_bridge_alerts_unrouted_total alert_bridge_sends_total alert_bridge_send_duration_seconds alert_bridge_queue_jobs
alert_bridge_dead_letters alert_bridge_circuit_open alert_bridge_sink_stuck alert_bridge_sink_digest_seconds alert_bridge_sink_recipients alert_bridge_sink_paused alert_bridge_config_reload_success_timestamp_seconds
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
    // What only Redis knows: until it has answered once, 0 would say that no alert waits.
    expect(text).not.toMatch(/^alert_bridge_(queue_jobs|dead_letters)\{/m)
  })

  it('of a thousand sources and a hundred sinks are no hundred thousand histograms', async () => {
    const metrics = createMetrics({ version: '1.2.3', node: 'v24' })
    const names = (count: number) => Array.from({ length: count }, (_, at) => `name-${at}`)
    initialiseMetrics(metrics, { sources: names(1_000), sinks: names(100) })
    const { values } = await metrics.deliveryLag.get()
    expect(values).toEqual([])
    metrics.deliveryLag.observe({
      ...{ labels: { source: 'name-1', sink: 'name-2' }, value: 3 },
      exemplarLabels: { alert: 'name-1.1' },
    })
    expect(await metrics.registry.metrics()).toContain('_count{source="name-1",sink="name-2"} 1')
  })

  it('of a name that leaves the config and comes back go on together, or begin together', async () => {
    const metrics = createMetrics({ version: '1.2.3', node: 'v24' })
    const initialise = (sinks: string[]) => initialiseMetrics(metrics, { sources: ['main'], sinks })
    const counted = async () => {
      const text = await metrics.registry.metrics()
      return [
        /^alert_bridge_sends_total\{sink="ops",result="delivered"\} (.+)$/m,
        /^alert_bridge_send_duration_seconds_count\{sink="ops"\} (.+)$/m,
        /^alert_bridge_delivery_lag_seconds_count\{source="main",sink="ops"\} (.+)$/m,
      ].map((line) => Number(line.exec(text)?.[1]))
    }
    initialise(['ops'])
    metrics.sends.inc({ sink: 'ops', result: 'delivered' })
    const seen = { value: 1, exemplarLabels: { alert: 'main.1' } }
    metrics.sendDuration.observe({ labels: { sink: 'ops' }, ...seen })
    metrics.deliveryLag.observe({ labels: { source: 'main', sink: 'ops' }, ...seen })
    initialise([])
    initialise(['ops'])
    expect(await counted()).toEqual([1, 1, 1])
    await forgetOthers(metrics, { sources: ['main'], sinks: [] })
    initialise(['ops'])
    expect(await counted()).toEqual([0, 0, 0])
  })

  it('count polls by every reason that the schedule knows, and by no other', async () => {
    expectTypeOf<(typeof pollReasons)[number]>().toEqualTypeOf<DecisionReason>()
    const text = await exposed()
    for (const reason of pollReasons)
      expect(text).toContain(`alert_bridge_polls_total{source="main",reason="${reason}"} 0`)
  })

  it('are the same in OpenMetrics, with the last alert of each bucket, and stay as they are in the other format', async () => {
    const metrics = createMetrics({ version: '1.2.3', node: 'v24' })
    initialiseMetrics(metrics, { sources: ['main'], sinks: ['ops'] })
    metrics.sends.inc({ sink: 'ops', result: 'delivered' })
    for (const [id, value] of [
      [1, 7],
      [2, 8],
      [3, 1e9],
    ] as const)
      metrics.detectionLag.observe({
        labels: { source: 'main' },
        value,
        exemplarLabels: { alert: `main.${id}` },
      })
    const [open, plain] = await Promise.all([openMetricsText(metrics.registry), metrics.registry.metrics()])
    expect(open).toMatch(/^# TYPE alert_bridge_sends counter$/m)
    expect(open).toMatch(/^alert_bridge_sends_total\{sink="ops",result="delivered"\} 1$/m)
    expect(open).toMatch(/le="10".*\} 2 # \{alert="main\.2"\} 8 \d+/)
    expect(open).toMatch(/le="\+Inf".*\} 3 # \{alert="main\.3"\} 1000000000 \d+/)
    expect(open).not.toMatch(/le="5".* # /)
    expect(open.endsWith('\n# EOF\n')).toBe(true)
    expect(plain).toMatch(/^# TYPE alert_bridge_sends_total counter$/m)
    expect(plain).not.toContain('main.2')
  })

  it('pass promtool', async () => {
    expect(promtool(['check', 'metrics'], await exposed())).toBe('')
  })
})

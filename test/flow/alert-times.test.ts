import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { testFolder } from '../support/process.ts'
import { fetchPrometheus, promtool } from '../support/promtool.ts'

beforeAll(...fetchPrometheus)

/**
 * After how many minutes of trouble each alert fires, and for how long after a single event it is shown: what the texts and the
 * runbook say of times. The cases of config/monitoring are evaluated each five minutes, or each hour, and see no shorter ones.
 */
interface Times {
  /** Where a shorter time would have it fire, and be quiet again at `firesAt`. */
  readonly quietAt?: number
  readonly firesAt: number
  readonly endsAt?: number
  /** What the replica `a` shows of sink `ops` and source `main`, in promtool's notation; the label `job` is the alert's name. */
  readonly series: Readonly<Record<string, string>>
}

const sink = 'sink="ops"'
const source = 'source="main"'
const sends = (result: string) => `sends_total{${sink},result="${result}"}`
const waiting = `queue_jobs{${sink},state="waiting"}`
const calls = (status: string) =>
  `upstream_requests_total{${source},endpoint="alerts/deliveries",status="${status}"}`
const toOne = { [`sink_recipients{${sink}}`]: '1x500' }
const lags = (late: string) => ({
  ...toOne,
  [`delivery_lag_seconds_bucket{${source},${sink},le="300"}`]: '0x500',
  [`delivery_lag_seconds_count{${source},${sink}}`]: late,
})
const budget = (used: string, resetAt: string) => ({
  [`budget_units_used{${source}}`]: used,
  [`budget_units_limit{${source}}`]: '2000x500',
  [`budget_reset_timestamp_seconds{${source}}`]: resetAt,
})
/** An event in minute 10. */
const once = '0x9 1x500'

const times: Readonly<Record<string, Times>> = {
  AlertBridgeLagBurnsFast: { firesAt: 7, series: lags('0x4 5+1x500') },
  AlertBridgeLagBurnsSlowly: { firesAt: 20, series: lags('0x4 10+1x500') },
  AlertBridgeLagMissesObjective: { firesAt: 65, series: lags('0x4 50+1x500') },
  AlertBridgeDown: { firesAt: 16, series: { 'build_info{version="1"}': '1x10 stale' } },
  AlertBridgeNotReady: { firesAt: 15, series: { ready: '1x9 0x50' } },
  AlertBridgeReplicaNotReady: { firesAt: 25, series: { ready: '1x9 0x50', 'ready{instance="b"}': '1x90' } },
  AlertBridgeFindings: { firesAt: 40, series: { 'findings{level="failed"}': once } },
  AlertBridgeReloadRefused: { firesAt: 20, series: { config_last_reload_successful: '1x9 0x50' } },
  AlertBridgeReplicasDisagree: {
    firesAt: 40,
    series: { config_hash: '17x9 18x90', 'config_hash{instance="b"}': '17x99' },
  },
  AlertBridgePollerSilent: { firesAt: 15, series: { [`poll_overdue_seconds{${source}}`]: '0x9 301x50' } },
  AlertBridgeNobodyPolls: {
    firesAt: 21,
    series: {
      [`alerts_seen_total{${source}}`]: '0x90',
      [`next_poll_timestamp_seconds{${source}}`]: '1x10 stale',
    },
  },
  AlertBridgeSourceStopped: { firesAt: 15, series: { [`source_state{${source},state="stopped"}`]: once } },
  AlertBridgeSourceHeld: { firesAt: 70, series: { [`source_state{${source},state="held"}`]: once } },
  AlertBridgeTokenRefused: { firesAt: 10, endsAt: 40, series: { [calls('401')]: once } },
  // Four calls a minute succeed until minute 30, one a minute fails from then on: most of 15 minutes' calls do in minute 43.
  AlertBridgeUpstreamFailing: {
    firesAt: 58,
    series: { [calls('200')]: '0+4x30 120x90', [calls('503')]: '0x30 1+1x90' },
  },
  AlertBridgeBehind: {
    firesAt: 41,
    series: {
      [`last_poll_timestamp_seconds{${source}}`]: '0+60x90',
      [`last_complete_walk_timestamp_seconds{${source}}`]: '0x90',
    },
  },
  AlertBridgeStateLost: { firesAt: 10, endsAt: 70, series: { [`state_lost_total{${source}}`]: once } },
  AlertBridgePollerRestarts: {
    firesAt: 10,
    endsAt: 70,
    series: { [`poller_restarts_total{${source}}`]: once },
  },
  AlertBridgeFeedGaps: { firesAt: 10, endsAt: 370, series: { [`feed_gap_total{${source}}`]: '0x9 6x500' } },
  AlertBridgeBudgetSpent: { firesAt: 15, series: budget('1999x9 2000x90', '36000x500') },
  AlertBridgeBudgetRunsOut: { firesAt: 20, series: budget('1800x9 1801x90', '36000x500') },
  AlertBridgeBudgetSmaller: {
    firesAt: 70,
    series: {
      [`budget_units_learned{${source}}`]: '2000x9 1799x90',
      [`budget_units_limit{${source}}`]: '2000x99',
    },
  },
  AlertBridgeRateLimited: {
    firesAt: 10,
    endsAt: 70,
    series: { [`upstream_rate_limited_total{${source},limit="minute"}`]: '0x9 4x500' },
  },
  // The alert ends an hour after the last attempt.
  AlertBridgeSinkFailing: {
    firesAt: 15,
    endsAt: 90,
    series: { [`circuit_open{${sink}}`]: once, [sends('retry')]: '0x9 1+1x20 21x500', [waiting]: '0x500' },
  },
  // A probe gets through in minute 50, and the last attempt is in minute 130.
  AlertBridgeSinkDown: {
    quietAt: 100,
    firesAt: 121,
    endsAt: 190,
    series: {
      [`circuit_open{${sink}}`]: '0x9 1x39 0 1x400',
      [waiting]: '1x130 0x400',
      [sends('retry')]: '0x129 1x400',
    },
  },
  // Refusals from minute 50 on, an hour after the last one of which nothing shows them; something was taken in minute 10.
  AlertBridgeSinkRefuses: {
    firesAt: 75,
    endsAt: 110,
    series: {
      [sends('delivered')]: once,
      [sends('dead')]: '0x49 3x500',
      ...toOne,
      [`circuit_open{${sink}}`]: '0x500',
    },
  },
  AlertBridgeSinkTakesNothing: {
    firesAt: 40,
    series: { [waiting]: once, [sends('delivered')]: '1x500', [`circuit_open{${sink}}`]: '0x500' },
  },
  AlertBridgeSinkStuck: { firesAt: 15, series: { [`sink_stuck{${sink}}`]: once } },
  AlertBridgeQueueGrows: { firesAt: 46, series: { [waiting]: '0x15 86+1x400' } },
  AlertBridgeSinkPaused: {
    firesAt: 370,
    series: { [`sink_paused{${sink}}`]: once, [`queue_jobs{${sink},state="paused"}`]: '1x500' },
  },
  AlertBridgeDeadLetters: { firesAt: 10, endsAt: 25, series: { [sends('expired')]: once } },
  AlertBridgeOrphans: { firesAt: 70, series: { 'orphaned_jobs{sink="old"}': once } },
  AlertBridgeQuarantine: {
    firesAt: 10,
    endsAt: 70,
    series: { [`alerts_quarantined_total{${source}}`]: once },
  },
  AlertBridgeQuarantineFull: {
    firesAt: 10,
    endsAt: 70,
    series: { [`quarantine_fell_out_total{${source}}`]: once },
  },
  AlertBridgeRulesSilent: { firesAt: 70, series: { [`rules_silent{${source}}`]: once } },
  AlertBridgeUnrouted: { firesAt: 10, endsAt: 70, series: { [`alerts_unrouted_total{${source}}`]: once } },
}

// All rules are evaluated for each minute over all series of a test: those of an hour need not take part in the day of others.
it.each([
  ['an hour or two', (minutes: number) => minutes <= 130],
  ['longer', (minutes: number) => minutes > 130],
])(
  'each alert fires as long after its trouble began, and is shown for as long after an event, as is said of it: %s',
  (_span, isOne) => {
    const cases = Object.entries(times).filter(([, { firesAt, endsAt = 0 }]) =>
      isOne(Math.max(firesAt, endsAt)),
    )
    const file = join(testFolder(), 'times.test.yaml')
    const tests = [
      {
        interval: '1m',
        input_series: cases.flatMap(([alert, { series }]) =>
          Object.entries(series).map(([name, values]) => ({ series: seriesOf(alert, name), values })),
        ),
        promql_expr_test: cases.flatMap(([alert, { quietAt, firesAt, endsAt }]) => [
          ...(quietAt === undefined ? [] : [fires(alert, quietAt, false)]),
          fires(alert, firesAt - 1, false),
          fires(alert, firesAt, true),
          ...(endsAt === undefined ? [] : [fires(alert, endsAt - 1, true), fires(alert, endsAt + 1, false)]),
        ]),
      },
    ]
    const rules = join(import.meta.dirname, '../../config/monitoring/rules.yaml')
    writeFileSync(file, stringify({ rule_files: [rules], evaluation_interval: '1m', tests }))
    expect(promtool(['test', 'rules', file])).toContain('SUCCESS')
  },
)

/** `sends_total{sink="ops"}` of a replica of this job. */
function seriesOf(job: string, name: string): string {
  const [metric = '', labels = ''] = name.replace(/\}$/, '').split('{')
  const instance = labels.includes('instance=') ? '' : ',instance="a"'
  return `alert_bridge_${metric}{job="${job}"${instance}${labels === '' ? '' : `,${labels}`}}`
}

function fires(alert: string, minute: number, yes: boolean) {
  return {
    expr: `count(ALERTS{alertname="${alert}",job="${alert}",alertstate="firing"})`,
    eval_time: `${minute}m`,
    exp_samples: yes ? [{ labels: '{}', value: 1 }] : [],
  }
}

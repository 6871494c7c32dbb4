import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { fixedParts } from '../../src/app/fixed-parts.ts'
import { commandNames, createProgram } from '../../src/cli/cli.ts'
import { parseConfig } from '../../src/config/load.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { chart, findHelm, helm, manifestsOf } from '../helm/helm.ts'
import { startApp } from '../support/app.ts'
import { api, metric } from '../support/bridge.ts'
import { testFolder } from '../support/process.ts'
import { fetchPrometheus, promtool, startPrometheus } from '../support/promtool.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

beforeAll(...fetchPrometheus)

/** The files of config/monitoring, held against the metrics that there are and against a real Prometheus. */
const folder = join(import.meta.dirname, '../../config/monitoring')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: Readonly<Record<string, string>>
}
interface Panel {
  readonly type: string
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

const rules = (parse(read('rules.yaml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (each) => each.rules,
)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const dashboard = JSON.parse(read('dashboard.json')) as { panels: Panel[] }
const panels = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
)
const runbook = read('runbook.md')
const caseFiles = ['rules.test.yaml', 'rules-slow.test.yaml']
const redis = useRedis()

/** It computes and waits for nothing: the limit only ends one that runs away, however slow the machine is. */
const promtoolMs = 60_000

describe('the rules', () => {
  it('are right, and have each a case in which they fire and one in which they are quiet', () => {
    expect(promtool(['check', 'rules', join(folder, 'rules.yaml')])).toContain('SUCCESS')
    const tests = caseFiles.flatMap((name) => (parse(read(name)) as { tests: RuleTest[] }).tests)
    for (const { alert = '' } of alerts) {
      const firing = tests
        .flatMap(({ alert_rule_test = [] }) => alert_rule_test)
        .filter(({ alertname }) => alertname === alert)
        .flatMap(({ exp_alerts }) => exp_alerts.map(({ exp_labels }) => exp_labels?.['job'] ?? 'no job'))
      const jobs = tests
        .flatMap((each) => each.input_series)
        .flatMap(({ series }) => /job="([^:"]+: [^"]+)"/.exec(series)?.[1] ?? [])
        .filter((job) => job.startsWith(`${alert}: `))
      const quiet = jobs.filter((job) => !firing.includes(job))
      expect([alert, firing.length > 0, quiet.length > 0]).toEqual([alert, true, true])
    }
  })

  it.each(caseFiles)(
    'fire where they should and are quiet where they should be: %s',
    (name) => {
      expect(promtool(['test', 'rules', join(folder, name)])).toContain('SUCCESS')
    },
    promtoolMs,
  )

  it.each(caseFiles)(
    'do the same over buckets as Prometheus 3 stores them (le="300.0"), with the labels that its operator adds: %s',
    (name) => {
      const text = read(name)
      const ofThree = text.replaceAll(/,le="(\d+)"/g, ',le="$1.0"')
      expect(ofThree).not.toBe(text)
      const cases = parse(ofThree) as { rule_files: string[]; tests: RuleTest[] }
      const endpoint = 'http'
      for (const { input_series, alert_rule_test = [] } of cases.tests) {
        // It has one named like a label of the bridge's own, which the chart lets win.
        for (const each of input_series)
          if (!/[{,]endpoint=/.test(each.series))
            each.series = each.series.replace('}', `,endpoint="${endpoint}"}`)
        for (const { alertname, exp_alerts } of alert_rule_test)
          for (const { exp_labels = {} } of exp_alerts)
            if (!ofCalls.includes(alertname) && exp_labels['job']) exp_labels['endpoint'] = endpoint
      }
      const file = join(testFolder(), name)
      writeFileSync(file, stringify({ ...cases, rule_files: [join(folder, 'rules.yaml')] }))
      expect(promtool(['test', 'rules', file])).toContain('SUCCESS')
    },
    promtoolMs,
  )

  it('have each a severity and an entry in the runbook, which has no other', () => {
    const entries = [...runbook.matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
    expect(entries).toEqual(alerts.map(({ alert }) => alert))
    for (const { alert, labels, annotations } of alerts) {
      expect(labels?.severity).toMatch(/^(critical|warning|info)$/)
      expect(annotations?.['runbook_url']).toBe(`runbook.md#${alert?.toLowerCase()}`)
    }
  })

  it('name only metrics and labels that there are, as do the panels of the dashboard', () => {
    const names = known()
    const recorded = rules.flatMap(({ record }) => record ?? [])
    for (const { expr } of [...rules, ...panels]) {
      const plain = recorded.reduce((left, name) => left.replaceAll(name, ''), expr)
      for (const [, name = '', matchers = ''] of plain.matchAll(
        /\b((?:alert_bridge|process|nodejs)_\w+)(?:\{(.*?)\})?/g,
      )) {
        const there = names.get(name.replace(/_(bucket|count|sum)$/, '')) ?? names.get(name)
        expect([name, there !== undefined]).toEqual([name, true])
        const labels = [...matchers.matchAll(/(\w+)\s*=/g)].map(([, label = '']) => label)
        expect(labels.filter((label) => !['job', 'le', ...(there ?? [])].includes(label))).toEqual([])
      }
    }
  })
})

it('the dashboard keeps deployments apart that name their sinks and sources alike', () => {
  // One in two namespaces, of two replicas each, with other queues and budgets.
  const of = (name: string, namespace: string, value: number) =>
    ['a', 'b'].map((instance) => ({
      series: `alert_bridge_${name},job="bridge",namespace="${namespace}",instance="${instance}"}`,
      values: `${value}`,
    }))
  const deployment = (namespace: string, waiting: number, dead: number, used: number, limit: number) => [
    ...of('queue_jobs{sink="ops",state="waiting"', namespace, waiting),
    ...of('dead_letters{sink="ops"', namespace, dead),
    ...of('budget_units_used{source="main"', namespace, used),
    ...of('budget_units_limit{source="main"', namespace, limit),
  ]
  const input_series = [
    ...deployment('prod', 10, 1, 1_500, 2_000),
    ...deployment('test', 5, 2, 10_000, 20_000),
  ]
  const shows = Object.entries({ Waiting: 15, 'Dead letters': 3, 'Budget left': 0.25 })
  const promql_expr_test = shows.map(([title, value]) => ({
    expr: filled(panels.find((panel) => panel.title === title)?.expr ?? ''),
    eval_time: '0s',
    exp_samples: [{ labels: '{}', value }],
  }))
  const file = join(testFolder(), 'dashboard.test.yaml')
  const tests = [{ interval: '1m', input_series, promql_expr_test }]
  writeFileSync(file, stringify({ rule_files: [], evaluation_interval: '1m', tests }))
  expect(promtool(['test', 'rules', file])).toContain('SUCCESS')
  expect(panels.filter(({ expr }) => /by \((source|sink)/.test(expr))).toEqual([])
})

it('the runbook names only commands and options that there are', async () => {
  const program = await createProgram(commandNames)
  for (const [, line = ''] of runbook.matchAll(/`alert-bridge ([a-z][^`]*)`/g)) {
    const [name = '', ...words] = line.split(' ')
    const command = program.commands.find((each) => each.name() === name)
    expect([line, command !== undefined]).toEqual([line, true])
    const options = words.filter((word) => word.startsWith('--'))
    expect(options.filter((word) => !command?.options.some(({ long }) => long === word))).toEqual([])
  }
})

it('the runbook says when a stopped source is tried again as the table of failures does', () => {
  const table = readFileSync(join(import.meta.dirname, '..', 'faults', 'README.md'), 'utf8')
  const [, slower = 'not in the table'] =
    /5 min after the token is right, or (its plan's .+?)[;|]/.exec(table) ?? []
  expect(runbook).toContain(`is tried again every 5 minutes, or with ${slower.trim()}`)
})

const entryOf = (alert: string) => new RegExp(`^## ${alert}\n([^#]+)`, 'm').exec(runbook)?.[1] ?? ''

it('the runbook names what a restart takes of a config that a reload refuses', () => {
  const text = `
sources: { main: { baseUrl: "https://api.example.com", token: t } }
sinks: { hook: { type: webhook, url: "https://hooks.example.com/" } }
routes: [{ sinks: [hook] }]
`
  const loaded = parseConfig(text, { env: {}, folder: '/' })
  if (!loaded.ok) throw new Error('the config is refused')
  const names = [...fixedParts(loaded.config).keys()].map((name) => name.replace(/^redis\..*/, 'redis'))
  const entry = entryOf('AlertBridgeReloadRefused')
  expect(names.filter((name) => !entry.includes(`\`${name}\``))).toEqual([])
})

it('the runbook sends nobody to Redis for what Redis has lost', () => {
  const entry = entryOf('AlertBridgeStateLost')
  expect(entry).toContain('`startFrom')
  expect(entry).not.toContain('replay')
})

it('a real Prometheus takes the rules, and finds data of a running bridge for every panel', async () => {
  // Before the bridge runs in this process: it would not answer meanwhile.
  const scaling = scalingQuery()
  const sandbox = await startSandbox()
  const [hook, collector] = [await startWebhookReceiver(), await startWebhookReceiver()]
  const { url } = await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
traces: { url: "${collector.url}" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 } } }
sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook], context: [price] }]
`)
  const prometheus = await startPrometheus([new URL(url).host], join(folder, 'rules.yaml'))
  sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
  await hook.received(1)
  // No sink has left the config of this bridge.
  const without = panels.filter(({ expr }) => expr.includes('orphaned_jobs'))
  let empty: readonly string[] = []
  await until(
    'every panel has data',
    async () => {
      const answers = panels
        .filter((panel) => !without.includes(panel))
        .map(async ({ title, expr }) =>
          (await prometheus.query(filled(expr))).length > 0 ? [] : [`${title}: ${expr}`],
        )
      empty = (await Promise.all(answers)).flat()
      return empty.length === 0
    },
    15_000,
  ).catch((thrown: unknown) => {
    throw new Error(`without data: ${empty.join('; ')}`, { cause: thrown })
  })
  await until('the query that scales senders counts jobs', async () => {
    const [sum] = (await prometheus.query(scaling)) as { value: [number, string] }[]
    return sum?.value[1] === '0'
  })
  // The receiver was told the span that the collector gets.
  const [, traceId, spanId] = String(hook.requests[0]?.headers['traceparent']).split('-')
  await until('the span of the send is collected', () =>
    collector.requests.some(({ body }) => body.includes(`{"traceId":"${traceId}","spanId":"${spanId}"`)),
  )
  // It asked for OpenMetrics.
  await until('an exemplar names the alert', async () => {
    const [lag] = await prometheus.exemplars('alert_bridge_delivery_lag_seconds_bucket')
    return /^\{"alert":"main\.\d+"\}$/.test(JSON.stringify(lag?.exemplars[0]?.labels ?? {}))
  })
  // What the bridge computes at each scrape, by its own clock.
  expect(await prometheus.query('alert_bridge_poll_overdue_seconds == 0')).toHaveLength(1)
  const evaluated = await prometheus.rules()
  expect(evaluated.map(({ name }) => name).sort()).toEqual(
    rules.map(({ alert, record }) => alert ?? record ?? '').sort(),
  )
  expect(evaluated.filter(({ health }) => health === 'err')).toEqual([])
  expect(evaluated.filter(({ state }) => state === 'firing')).toEqual([])
})

it('each scrape shows how late the event loop was since the one before', async () => {
  const sandbox = await startSandbox({ history: 0 })
  const { url } = await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token } }
sinks: { hook: { type: webhook, url: "https://hooks.example.com/" } }
routes: [{ sinks: [hook] }]
`)
  const lag = async () => metric(url, 'nodejs_eventloop_lag_p99_seconds')
  await lag()
  // Reading begins the measurement anew, from the next tick of its timer on, which has one each 10 ms.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const endMs = performance.now() + 200
  while (performance.now() < endMs);
  expect(await lag()).toBeGreaterThan(0.15)
})

it('receivers are told of no span where the config asks for no traces', async () => {
  const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
  await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 } } }
sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
`)
  sandbox.fire({})
  await hook.received(1)
  expect(hook.requests[0]?.headers).not.toHaveProperty('traceparent')
})

it('a sink says for how long it gathers alerts, so that these are not taken for late, also after a reload', async () => {
  const sandbox = await startSandbox({ history: 0 })
  const prefix = freshPrefix()
  const config = (digest: string) => `
redis: { url: "${redis.url}", prefix: ${prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token } }
sinks:
  desk: { type: email, smtp: "smtp://127.0.0.1:1", from: a@example.com, to: [b@example.com]${digest} }
  hook: { type: webhook, url: "https://hooks.example.com/" }
routes: [{ sinks: [desk, hook] }]
`
  let text = config(', digest: 15m')
  const load = () => parseConfig(text, { env: {}, folder: '/' })
  const { app, url } = await startApp(text, { load })
  const gathers = async (sink: string) => metric(url, `alert_bridge_sink_digest_seconds{sink="${sink}"}`)
  expect([await gathers('desk'), await gathers('hook')]).toEqual([900, 0])
  text = config('')
  expect(await app.reload()).toEqual({ ok: true })
  expect([await gathers('desk'), await gathers('hook')]).toEqual([0, 0])
})

it('one mail that each of its recipients refuses is no sink that refuses everything', async () => {
  const [sandbox, smtp] = [await startSandbox({ history: 0 }), await startSmtpReceiver()]
  smtp.script({ data: () => ({ code: 554, text: '5.7.1 content rejected' }) })
  const { url } = await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 } } }
sinks:
  desk: { type: email, smtp: "${smtp.url}", allowPrivateNetworks: true, from: a@example.com, to: [b@example.com, c@example.com, d@example.com] }
  hook: { type: webhook, url: "https://hooks.example.com/" }
routes: [{ sinks: [desk] }]
`)
  const recipients = async (sink: string) => metric(url, `alert_bridge_sink_recipients{sink="${sink}"}`)
  expect([await recipients('desk'), await recipients('hook')]).toEqual([3, 1])
  const fired = async (count: number) => {
    for (let at = 0; at < count; at += 1) sandbox.fire({})
    const dead = () => metric(url, 'alert_bridge_sends_total{sink="desk",result="dead"}')
    const before = await dead()
    await until('each recipient has refused it', async () => (await dead()) === before + 3 * count)
    const { verdict } = await api<StatusView>(url, '/api/v1/status')
    return verdict.findings.filter(({ code }) => code === 'sink_refuses').map(({ text }) => text)
  }
  expect(await fired(1)).toEqual([])
  expect(await fired(2)).toEqual([
    'Sink desk refuses everything: the last 3 alerts were given up on (rejected: 554 5.7.1 content rejected)',
  ])
})

it('history that `startFrom` names is not told as late, by which a first start would page', async () => {
  const [sandbox, hook] = [await startSandbox({ history: 8 }), await startWebhookReceiver()]
  const { url } = await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 } } }
sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
`)
  const measured = () => metric(url, 'alert_bridge_delivery_lag_seconds_count{source="main",sink="hook"}')
  const delivered = (count: number) =>
    until(`${count} are delivered`, async () => {
      return (await metric(url, 'alert_bridge_sends_total{sink="hook",result="delivered"}')) === count
    })
  await delivered(8)
  expect(await measured()).toBe(0)
  sandbox.fire({})
  await delivered(9)
  expect(await measured()).toBe(1)
})

/** A case is a value of the label `job`, which begins with the name of its alert. */
interface RuleTest {
  readonly input_series: readonly { series: string }[]
  readonly alert_rule_test?: readonly {
    readonly alertname: string
    readonly exp_alerts: readonly { readonly exp_labels?: Record<string, string> }[]
  }[]
}

/** What these tell is no matter of an endpoint. */
const ofCalls = ['AlertBridgeTokenRefused', 'AlertBridgeUpstreamFailing']

/** What the chart has KEDA ask, without the labels that a cluster gives. */
function scalingQuery(): string {
  const { stdout } = helm(findHelm(), [
    'template',
    'x',
    chart,
    '--values',
    join(chart, 'ci/apart-values.yaml'),
  ])
  const scaled = manifestsOf(stdout).find(({ kind }) => kind === 'ScaledObject')
  const query = scaled?.spec.triggers[0]?.metadata['query'] ?? ''
  // The README breaks it into lines.
  const inOneWord = (text: string) => text.replaceAll(/\s+/g, '')
  const general = query.replaceAll('"default"', '"NAMESPACE"').replaceAll('"x-', '"RELEASE-')
  expect(inOneWord(readFileSync(join(chart, 'README.md'), 'utf8'))).toContain(inOneWord(general))
  return query.replaceAll(/(namespace|service)="[^"]+",/g, '')
}

/** Grafana's variables, as it would fill them in. */
function filled(expression: string): string {
  return expression.replaceAll('$__rate_interval', '30s').replaceAll(/\$(job|source|sink)/g, '.+')
}

/** Every metric that the bridge has, with its labels. */
function known(): ReadonlyMap<string, readonly string[]> {
  const { registry } = createMetrics({ version: '1', node: 'v24' })
  return new Map(
    registry
      .getMetricsAsArray()
      .map((metric) => [metric.name, (metric as { labelNames?: string[] }).labelNames ?? []]),
  )
}

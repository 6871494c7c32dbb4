import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { stopMsMaxOf } from '../../src/delivery/worker/stop-times.ts'
import { fetchPrometheus, promtool } from '../support/promtool.ts'
import { chart, findHelm, type HelmRun, helm, type Manifest, manifestsOf, root } from './helm.ts'
import { typeErrors } from './kubernetes-types.ts'

beforeAll(...fetchPrometheus)

/** What an end needs beside its last sends: the connections and the HTTP server are closed. */
const closingMs = 10_000
const monitoringApi = 'monitoring.coreos.com/v1'
let binary = ''
let folder = ''
beforeAll(() => {
  binary = findHelm()
  folder = mkdtempSync(join(tmpdir(), 'chart-'))
}, 240_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ci = readdirSync(join(chart, 'ci'))
const ciFile = (name: string) => join(chart, 'ci', `${name}-values.yaml`)

/** What helm made of the same values before. */
const runs = new Map<string, HelmRun>()

function template(base: string, changes: object = {}, flags: readonly string[] = []): HelmRun {
  const file = join(folder, 'changes.yaml')
  const values = stringify(changes)
  const key = JSON.stringify([base, values, flags])
  writeFileSync(file, values)
  const run =
    runs.get(key) ??
    helm(binary, ['template', 'bridge', chart, '--values', ciFile(base), '--values', file, ...flags])
  runs.set(key, run)
  return run
}

function rendered(base: string, changes: object = {}, flags: readonly string[] = []): Manifest[] {
  const run = template(base, changes, flags)
  expect(run.stderr).toBe('')
  const manifests = manifestsOf(run.stdout)
  all.push(...manifests)
  return manifests
}

/** Every object that a test has rendered. */
const all: Manifest[] = []

function one(manifests: readonly Manifest[], kind: string): Manifest {
  const found = manifests.filter((manifest) => manifest.kind === kind)
  expect(found.map(({ kind }) => kind)).toEqual([kind])
  return found[0] as Manifest
}

function podOf(manifests: readonly Manifest[]) {
  return one(manifests, 'Deployment').spec.template
}

function configOf(manifests: readonly Manifest[]): string {
  const map = manifests.find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'bridge-alert-bridge',
  )
  return map?.data?.['config.yaml'] ?? ''
}

describe('the chart', () => {
  test('takes each value as a text, never as YAML', () => {
    const text = 'x"\n  injected: "y'
    const changes = {
      image: { repository: 'r', tag: text },
      priorityClassName: text,
      dataVolume: { sizeLimit: text },
    }
    expect(podOf(rendered('minimal', changes)).spec).toMatchObject({
      priorityClassName: text,
      containers: [{ image: `r:${text}` }],
      volumes: expect.arrayContaining([expect.objectContaining({ emptyDir: { sizeLimit: text } })]),
    })
  })

  test.each(['values.yaml', ...ci.map((name) => `ci/${name}`)])(
    'passes helm lint --strict with %s',
    (values) => {
      const run = helm(binary, ['lint', '--strict', chart, '--values', join(chart, values)])
      expect(run.stderr + run.stdout).toContain('0 chart(s) failed')
      expect(run.ok).toBe(true)
    },
  )

  test('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))).toMatchObject({
      version,
      appVersion: version,
    })
  })

  test.each(ci)('labels every object of %s and names it after the release', (values) => {
    const manifests = rendered(values.replace('-values.yaml', ''), {}, ['--api-versions', monitoringApi])
    expect(manifests.length).toBeGreaterThan(1)
    for (const { metadata } of manifests.filter(
      ({ metadata }) => !/-(extra|dashboard|test)$/.test(metadata.name),
    )) {
      expect(metadata.name).toMatch(/^bridge-alert-bridge(-senders)?$/)
      expect(metadata.labels).toMatchObject({
        'app.kubernetes.io/name': 'alert-bridge',
        'app.kubernetes.io/instance': 'bridge',
        'app.kubernetes.io/managed-by': 'Helm',
      })
    }
  })

  test('runs as nobody special, on a read-only root, without a service account token', () => {
    const { spec } = podOf(rendered('minimal'))
    expect(spec.automountServiceAccountToken).toBe(false)
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(spec.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test.each<[string, string | undefined, number]>([
    ['none', undefined, 10],
    ['half a second', '500ms', 10],
    ['seconds', '25s', 25],
    ['minutes and a part', '1.5m', 90],
    ['the longest that there is', '5m', 300],
    ['a variable', `\${TIMEOUT}`, 300],
  ])('gives a pod the time that a stop may take, with a timeout of %s', (_what, timeout, seconds) => {
    const { spec } = podOf(rendered('minimal', { config: { sinks: { slow: { type: 'webhook', timeout } } } }))
    expect(spec.terminationGracePeriodSeconds).toBe(seconds + 30)
    expect(spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(
      stopMsMaxOf({ timeoutMs: seconds * 1_000 }) + closingMs,
    )
  })

  test('knows no timeout of a ConfigMap of your own, and lets you give a pod more time', () => {
    const grace = (values: string, changes: object = {}) =>
      podOf(rendered(values, changes)).spec.terminationGracePeriodSeconds
    expect(grace('existing-configmap')).toBe(330)
    expect(grace('minimal', { terminationGracePeriodSeconds: 600 })).toBe(600)
  })

  test('probes alive and ready', () => {
    const { spec } = podOf(rendered('minimal'))
    const [container] = spec.containers
    expect(container.livenessProbe?.httpGet).toEqual({ path: '/-/healthy', port: 'http' })
    expect(container.startupProbe.httpGet).toEqual({ path: '/-/healthy', port: 'http' })
    expect(container.readinessProbe.httpGet).toEqual({ path: '/-/ready', port: 'http' })
    expect(container.ports).toEqual([{ name: 'http', containerPort: 8080 }])
  })

  test('follows the port of config.http.listen', () => {
    const manifests = rendered('minimal', { config: { http: { listen: ':9000' } } })
    expect(podOf(manifests).spec.containers[0].ports[0]?.containerPort).toBe(9000)
    expect(one(manifests, 'Service').spec.ports[0]).toMatchObject({ port: 8080, targetPort: 'http' })
  })

  test('mounts each Secret once, as files that the config points at', () => {
    const { spec } = podOf(rendered('full'))
    const secrets = spec.volumes.filter((volume) => volume.secret)
    expect(secrets.map(({ secret }) => secret?.secretName)).toEqual(['alert-bridge', 'mail', 'redis'])
    const paths = spec.containers[0].volumeMounts.map(({ mountPath }) => mountPath)
    expect(paths).toEqual([
      '/etc/alert-bridge/config',
      '/var/lib/alert-bridge',
      '/etc/alert-bridge/secrets/alert-bridge',
      '/etc/alert-bridge/secrets/mail',
      '/etc/alert-bridge/secrets/redis',
      '/etc/ssl/company',
    ])
  })

  test('takes a list of Secrets that was left empty', () => {
    const { spec } = podOf(rendered('minimal', { existingSecrets: null }))
    expect(spec.volumes.flatMap(({ secret }) => secret?.secretName ?? [])).toEqual(['redis'])
  })

  test('rolls the pods when the config changes, and only then', () => {
    const sum = (changes: object) =>
      podOf(rendered('minimal', changes)).metadata.annotations?.['checksum/config']
    expect(sum({})).toMatch(/^[0-9a-f]{64}$/)
    expect(sum({ config: { log: { level: 'debug' } } })).not.toBe(sum({}))
    expect(sum({ redis: { existingSecret: { name: 'other' } } })).not.toBe(sum({}))
    expect(sum({ replicas: 2 })).toBe(sum({}))
  })

  test('one replica has no disruption budget; several have one and spread over nodes', () => {
    expect(rendered('minimal').map(({ kind }) => kind)).not.toContain('PodDisruptionBudget')
    const several = rendered('minimal', { replicas: 2 })
    const selector = one(several, 'Deployment').spec.selector
    expect(one(several, 'PodDisruptionBudget').spec).toEqual({ maxUnavailable: 1, selector })
    expect(podOf(several).spec.topologySpreadConstraints?.[0]).toMatchObject({ labelSelector: selector })
    expect(podOf(several).metadata.labels).toMatchObject(selector.matchLabels)
  })

  test('a ServiceMonitor takes both the wish and the API', () => {
    const kinds = (base: string, flags: string[]) => rendered(base, {}, flags).map(({ kind }) => kind)
    expect(kinds('full', ['--api-versions', monitoringApi])).toContain('ServiceMonitor')
    expect(kinds('full', [])).not.toContain('ServiceMonitor')
    expect(kinds('minimal', ['--api-versions', monitoringApi])).not.toContain('ServiceMonitor')
  })

  test('a ServiceMonitor scrapes the port of the Service, and leaves the labels of the bridge as they are', () => {
    const relabelings = [{ action: 'labeldrop', regex: 'pod' }]
    const metricRelabelings = [{ action: 'labeldrop', regex: 'limit' }]
    const changes = { serviceMonitor: { relabelings, metricRelabelings } }
    const manifests = rendered('full', changes, ['--api-versions', monitoringApi])
    const selector = one(manifests, 'Deployment').spec.selector
    const { ports } = one(manifests, 'Service').spec
    expect(ports).toMatchObject([{ name: 'http' }])
    const endpoint = { port: 'http', path: '/metrics', honorLabels: true, interval: '15s' }
    expect(one(manifests, 'ServiceMonitor').spec).toMatchObject({
      selector,
      endpoints: [{ ...endpoint, relabelings, metricRelabelings }],
    })
  })

  test('its rules and its dashboard are those of config/monitoring, with the address of the runbook', () => {
    const monitoring = (name: string) => readFileSync(join(root, 'config/monitoring', name), 'utf8')
    // The chart has to bring its files: after a change, cp config/monitoring/{rules.yaml,dashboard.json} helm/alert-bridge/files/
    for (const name of ['rules.yaml', 'dashboard.json'])
      expect(readFileSync(join(chart, 'files', name), 'utf8')).toBe(monitoring(name))
    const full = rendered('full', {}, ['--api-versions', monitoringApi])
    const runbook = 'runbook_url: https://wiki.example.com/alert-bridge#'
    expect(one(full, 'PrometheusRule').spec).toEqual(
      parse(monitoring('rules.yaml').replaceAll('runbook_url: runbook.md#', runbook)),
    )
    const dashboard = full.find(({ metadata }) => metadata.name.endsWith('-dashboard'))
    expect(dashboard?.metadata.labels).toMatchObject({ grafana_dashboard: '1' })
    expect(dashboard?.data?.['alert-bridge.json']).toBe(monitoring('dashboard.json'))
    expect(rendered('full').map(({ kind }) => kind)).not.toContain('PrometheusRule')
    expect(rendered('minimal', {}, ['--api-versions', monitoringApi])).toHaveLength(
      rendered('minimal').length,
    )
  })

  test('the network policy lets in who is named and out to the ports that are', () => {
    expect(rendered('minimal').map(({ kind }) => kind)).not.toContain('NetworkPolicy')
    const { spec } = one(rendered('full', { networkPolicy: { egressPorts: [6379] } }), 'NetworkPolicy')
    const { ingress, egress } = spec
    expect(spec).toMatchObject({ policyTypes: ['Ingress', 'Egress'] })
    expect(ingress[0]?.from).toHaveLength(2)
    expect(egress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([53, 53, 6379, 443])
  })

  test.each<[string, { redis?: object; [part: string]: object }, readonly number[]]>([
    ['Redis', { redis: { url: 'rediss://user:6390@redis:6380/1' } }, [6380]],
    ['a password with a colon', { redis: { url: 'redis://:a:7@10.0.0.1' } }, [6379]],
    ['Sentinels', { redis: { sentinels: ['a:26379', 'b:26380'], name: 'main' } }, [26379, 26380]],
    [
      'Sentinels without a port',
      { redis: { sentinels: ['a', '[fd00::1]:26380'], name: 'main' } },
      [26379, 26380],
    ],
    ['a cluster', { redis: { cluster: ['redis://[fd00::1]:7001', 'redis://b:7002'] } }, [7001, 7002]],
    ['the feed', { sources: { main: { baseUrl: 'http://feed-8.internal' } } }, [80]],
    ['a proxy', { sinks: { a: { proxy: 'http://user:8@proxy:3128' } } }, [3128]],
    ['a receiver', { sinks: { a: { url: 'https://hooks.example.com:8443/a?b=c:1' } } }, [8443]],
    ['a mail server', { sinks: { a: { smtp: 'smtp://u:p@mail:2525?name=x' } } }, [2525]],
    ['mail servers', { sinks: { a: { smtp: 'smtp://mail' }, b: { smtp: 'smtps://mail' } } }, [587, 465]],
    ['a collector', { traces: { url: 'http://collector:4318/v1/traces' } }, [4318]],
    ['capitals', { sinks: { a: { url: 'HTTPS://hooks.example.com:8443/a' } } }, [8443]],
    ['a host from a variable', { redis: { url: `redis://:\${PASSWORD}@redis-\${ZONE:-a}:6390` } }, [6390]],
    ['a port with zeros before it', { sinks: { a: { url: 'https://hooks.example.com:08443' } } }, [8443]],
  ])('the network policy allows the port of an address in the config: %s', (_what, config, ports) => {
    const of = (egressPorts: readonly number[]) =>
      one(
        rendered('minimal', {
          ...(config.redis === undefined ? {} : { redis: { existingSecret: { name: '' } } }),
          networkPolicy: { enabled: true, egressPorts },
          config,
        }),
        'NetworkPolicy',
      ).spec.egress.flatMap((each) => each.ports.map(({ port }) => port))
    // 443: of the API and the receiver that these values have.
    expect(new Set(of([9]))).toEqual(new Set([53, 9, 443, ...ports]))
    // With an empty list, only extraEgress counts.
    expect(of([])).toEqual([53, 53])
  })

  test('apart, one Deployment polls and another one sends, and only that one is scaled', () => {
    const manifests = rendered('apart')
    const [poller, senders] = ['bridge-alert-bridge', 'bridge-alert-bridge-senders'].map((name) =>
      manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name),
    )
    const roleOf = (each: Manifest | undefined) => each?.spec.template.spec.containers[0].args.at(-1)
    expect([roleOf(poller), poller?.spec.replicas]).toEqual(['poller', 1])
    expect([roleOf(senders), senders?.spec.replicas]).toEqual(['sender', undefined])
    expect(senders?.spec.template.spec.containers[0].resources).toEqual({
      requests: { cpu: '100m', memory: '256Mi' },
    })
    expect(rendered('apart', { podLabels: null, commonLabels: null })).toEqual(manifests)
    // A Deployment that is there keeps its selector: Kubernetes lets nobody change it.
    const own = one(rendered('minimal'), 'Deployment').spec.selector
    expect(poller?.spec.selector).toEqual(own)
    expect(senders?.spec.selector.matchLabels).toEqual({
      ...own.matchLabels,
      'app.kubernetes.io/component': 'sender',
    })
    expect(senders?.spec.template.metadata.labels).toMatchObject(senders?.spec.selector.matchLabels ?? {})
    expect(one(manifests, 'Service').spec.selector).toEqual(own.matchLabels)
    const scaled = one(manifests, 'ScaledObject').spec
    expect(scaled).toMatchObject({
      scaleTargetRef: { name: 'bridge-alert-bridge-senders' },
      minReplicaCount: 1,
      maxReplicaCount: 4,
      triggers: [
        {
          type: 'prometheus',
          metricType: 'AverageValue',
          metadata: { serverAddress: 'http://prometheus.monitoring:9090', threshold: '100' },
        },
      ],
    })
    const query = scaled.triggers[0]?.metadata['query'] ?? ''
    expect(query).toContain('service="bridge-alert-bridge"')
    // By Prometheus itself: two replicas say the same, and no sender helps a sink that is paused or at fault.
    const of = (name: string, sink: string, values: number, more = '') => ({
      series: `alert_bridge_${name}{namespace="default",service="bridge-alert-bridge",instance="a",sink="${sink}"${more}}`,
      values: String(values),
    })
    const jobs = (sink: string, waiting: number, paused = 0) => [
      of('queue_jobs', sink, waiting, ',state="waiting"'),
      of('queue_jobs', sink, paused, ',state="paused"'),
    ]
    const series = [
      ...[...jobs('well', 50), ...jobs('paused', 0, 700), ...jobs('failing', 900)],
      ...[of('queue_jobs', 'well', 2, ',state="active"'), of('queue_jobs', 'failing', 1, ',state="active"')],
      ...[of('circuit_open', 'well', 0), of('circuit_open', 'paused', 0), of('circuit_open', 'failing', 1)],
    ]
    const replicas = series.flatMap((each) => [each, { ...each, series: each.series.replace('"a"', '"b"') }])
    const asked = [{ expr: query, eval_time: '0s', exp_samples: [{ labels: '{}', value: 52 }] }]
    const tests = [{ interval: '1m', input_series: replicas, promql_expr_test: asked }]
    const file = join(folder, 'query.test.yaml')
    writeFileSync(file, stringify({ rule_files: [], evaluation_interval: '1m', tests }))
    expect(promtool(['test', 'rules', file])).toContain('SUCCESS')
    const hpa = one(rendered('apart', { autoscaling: { kind: 'hpa' } }), 'HorizontalPodAutoscaler').spec
    expect(hpa.scaleTargetRef).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'bridge-alert-bridge-senders',
    })
  })

  test('scales the bridges themselves where senders are not apart', () => {
    const manifests = rendered('minimal', { autoscaling: { enabled: true } })
    expect(one(manifests, 'Deployment').spec.replicas).toBeUndefined()
    expect(one(manifests, 'HorizontalPodAutoscaler').spec).toMatchObject({
      scaleTargetRef: { name: 'bridge-alert-bridge' },
      minReplicas: 1,
      maxReplicas: 6,
      metrics: [
        {
          type: 'External',
          external: {
            metric: {
              name: 'alert_bridge_jobs_to_send',
              selector: { matchLabels: { service: 'bridge-alert-bridge' } },
            },
            target: { type: 'AverageValue', averageValue: '100' },
          },
        },
      ],
    })
    one(manifests, 'PodDisruptionBudget')
  })

  test('its own test fails until the bridge is ready, from a pod that the Service does not take for a bridge', async () => {
    const manifests = rendered('full')
    const pod = one(manifests, 'Pod')
    const { selector } = one(manifests, 'Service').spec
    expect(pod.metadata.labels).not.toMatchObject(selector)
    expect(one(manifests, 'NetworkPolicy').spec.ingress[0]?.from).toContainEqual({
      podSelector: { matchLabels: pod.metadata.labels },
    })
    let code = 503
    const asked: string[] = []
    const server = createServer(({ headers, url }, answer) => {
      asked.push(`${headers.host}${url}`)
      answer.writeHead(code).end('as the bridge says')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { command = [], args } = pod.spec.containers[0]
    const runs = async () => {
      const child = spawn(process.execPath, [...command.slice(1), args[0] ?? '', 'localhost', String(port)])
      return new Promise((resolve) => child.once('close', resolve))
    }
    expect(await runs()).toBe(1)
    code = 200
    expect(await runs()).toBe(0)
    expect(asked).toEqual([`127.0.0.1:${port}/readyz`, `127.0.0.1:${port}/readyz`])
  })

  test('extra objects are templates', () => {
    expect(rendered('full').map(({ metadata }) => metadata.name)).toContain('bridge-alert-bridge-extra')
  })

  test('with a ConfigMap of their own, people get no other one', () => {
    const manifests = rendered('existing-configmap')
    expect(manifests.map(({ kind }) => kind)).toEqual(['Service', 'Deployment', 'Pod'])
    const { spec } = podOf(manifests)
    expect(spec.volumes[0]).toEqual({ name: 'config', configMap: { name: 'my-config' } })
    expect(spec.serviceAccountName).toBe('shared')
    expect(spec.containers[0].args.slice(-2)).toEqual(['--role', 'sender'])
  })
})

describe('the rendered config', () => {
  test.each([['minimal'], ['full'], ['apart']])('of %s values passes check-config', (base) => {
    const loaded = load(configOf(rendered(base)))
    expect(loaded).toMatchObject({ ok: true })
  })

  test('has nothing that a later file of values sets to null', () => {
    const { main } = parse(configOf(rendered('minimal'))).sources
    const sources = { main: null, other: { ...main, budget: { unitsPerDay: null } } }
    const sinks = { another: null, 'trading-system': { secretFile: null } }
    const config = configOf(rendered('minimal', { config: { sources, sinks, operators: null } }))
    expect(load(config)).toMatchObject({ ok: true })
    expect(Object.keys(parse(config).sources)).toEqual(['other'])
  })

  test('keeps large numbers numbers, whatever helm writes them as', () => {
    const changes = { config: { sources: { main: { budget: { unitsPerDay: 2_000_000 } } } } }
    const loaded = load(configOf(rendered('minimal', changes)))
    expect(loaded).toMatchObject({ config: { sources: { main: { budget: { unitsPerDay: 2_000_000 } } } } })
  })

  test('reads Redis and the admin token from the Secrets that the values name', () => {
    const loaded = load(configOf(rendered('full')))
    if (!loaded.ok) throw new Error(loaded.mistakes.map(({ message }) => message).join())
    const { redis, http } = loaded.config
    expect(redis).toMatchObject({ mode: 'single' })
    expect('url' in redis ? redis.url.reveal() : '').toBe('redis://redis.example.com:6379')
    expect(http.adminToken?.reveal()).toBe('let-me-in')
    expect(http.listen).toEqual({ host: '0.0.0.0', port: 8080 })
  })

  test('knows the bridge by the names of its Service and of an Ingress', () => {
    const changes = { clusterDomain: 'example.internal', config: { http: { hosts: ['bridge.example.com'] } } }
    const loaded = load(configOf(rendered('minimal', changes, ['--namespace', 'markets'])))
    if (!loaded.ok) throw new Error(loaded.mistakes.map(({ message }) => message).join())
    expect(loaded.config.http.hosts).toEqual([
      'bridge.example.com',
      'bridge-alert-bridge',
      'bridge-alert-bridge.markets',
      'bridge-alert-bridge.markets.svc',
      'bridge-alert-bridge.markets.svc.example.internal',
    ])
  })
})

describe('values that cannot work are refused', () => {
  test('the default ones, with what is missing', () => {
    const run = helm(binary, ['template', 'bridge', chart])
    expect(run.ok).toBe(false)
    expect(run.stderr).toContain('set config.sources, config.sinks and config.routes (or existingConfigMap)')
  })

  test.each<[string, object, string]>([
    ['no Redis', { redis: { existingSecret: { name: '' } } }, 'no Redis is named'],
    ['two Redis', { config: { redis: { url: 'redis://one' } } }, 'Redis is named twice'],
    ['a loopback address', { config: { http: { listen: '127.0.0.1:8080' } } }, 'cannot reach it'],
    ['no address, which is a loopback one', { config: { http: null } }, 'cannot reach it'],
    [
      'two admin tokens',
      { adminToken: { existingSecret: { name: 'a' } }, config: { http: { adminTokenFile: '/x' } } },
      'the admin token is named twice',
    ],
    ['no source but one set to null', { config: { sources: { main: null } } }, 'config.sources is empty'],
    ['no domain of the cluster', { clusterDomain: null }, "missing property 'clusterDomain'"],
    ['no port', { service: { port: null } }, "missing property 'port'"],
    ['replicas as text', { replicas: 'three' }, '/replicas'],
    ['an unknown value', { replicaCount: 2 }, 'replicaCount'],
    ['an unknown role', { role: 'leader' }, '/role'],
    [
      'a grace period below what a stop may take',
      { terminationGracePeriodSeconds: 39 },
      'terminationGracePeriodSeconds is 39: sends that run at a stop need up to 40 s',
    ],
    ['a role beside senders apart', { role: 'poller', senders: { enabled: true } }, 'leave role out'],
    [
      'KEDA without Prometheus',
      { autoscaling: { enabled: true, kind: 'keda' } },
      'autoscaling.prometheusAddress',
    ],
    [
      'fewer replicas than the fewest',
      { autoscaling: { enabled: true, maxReplicas: 1, minReplicas: 2 } },
      'maxReplicas',
    ],
    [
      'a label of a pod by which senders are selected',
      { podLabels: { 'app.kubernetes.io/component': 'mine' }, senders: { enabled: true } },
      'app.kubernetes.io/component',
    ],
    ['a port out of range', { service: { port: 70_000 } }, '/service/port'],
    ['a secret without a name', { existingSecrets: [''] }, '/existingSecrets/0'],
  ])('%s', (_what, changes, sentence) => {
    const run = template('minimal', changes)
    expect(run.ok).toBe(false)
    expect(run.stderr).toContain(sentence)
  })
})

test('every object that was rendered has the fields of its kind, of the right types', {
  timeout: 240_000,
}, () => {
  for (const name of ci) rendered(name.replace('-values.yaml', ''))
  const once = [...new Map(all.map((object) => [JSON.stringify(object), object])).values()]
  const kinds = new Set(once.map(({ kind }) => kind))
  expect([...kinds]).toEqual(
    expect.arrayContaining(['Deployment', 'ScaledObject', 'PrometheusRule', 'NetworkPolicy']),
  )
  expect(typeErrors(once)).toEqual([])
  // What no type says: the text of a label. A tag may bring a digest (0.1.0@sha256:…), or anything.
  const labels = once.flatMap(({ metadata, spec }) => [metadata.labels, spec?.template?.metadata?.labels])
  const texts = labels.flatMap((each) => Object.values(each ?? {}))
  expect(texts.filter((text) => !/^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/.test(text))).toEqual([])
  const [first] = once.filter(({ kind }) => kind === 'Deployment')
  const wrong = { ...first, spec: { ...first?.spec, replica: 2 } } as Manifest
  expect(typeErrors([wrong])).toEqual([expect.stringContaining('\'"replica"\' does not exist')])
})

/** Loads a rendered config as the pod would, with secret files in a folder of this test instead of the mounts. */
function load(config: string) {
  const secrets: Record<string, string> = {
    'alert-bridge/token': 'upstream-token',
    'alert-bridge/webhook-secret': `whsec_${Buffer.alloc(24, 7).toString('base64')}`,
    'alert-bridge/slack-url': 'https://hooks.slack.example.com/services/T0/B0/x',
    'alert-bridge/admin-token': 'let-me-in',
    'mail/smtp': 'smtps://user:password@mail.example.com:465',
    'redis/url': 'redis://redis.example.com:6379',
    'redis/address': 'redis://redis.example.com:6379',
  }
  for (const [path, text] of Object.entries(secrets)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), `${text}\n`)
  }
  const file = join(folder, 'config.yaml')
  writeFileSync(file, config.replaceAll('/etc/alert-bridge/secrets', folder))
  return loadConfig(file, {})
}

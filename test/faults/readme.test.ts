import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/** The README promises a test for every row of "What happens when…": this looks whether it is there. */
const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
const section = readme.split(/^## /m).find((each) => each.startsWith('What happens when')) ?? ''
const named = [...section.matchAll(/`([\w-]+\/[\w-]+): ([^`]+)` \|$/gm)].map(([, file = '', name = '']) => [
  file,
  name,
])

it('every row of what happens when names a test', () => {
  const rows = section.split('\n').filter((line) => /^\| [^-*W]/.test(line))
  expect(named.length).toBe(rows.length)
  expect(named.length).toBeGreaterThan(20)
})

it.each(named)('%s.test.ts has "%s"', (file, name) => {
  const source = readFileSync(join(import.meta.dirname, `../${file}.test.ts`), 'utf8')
  expect(source.replaceAll(/\s+/g, ' ')).toContain(name)
})

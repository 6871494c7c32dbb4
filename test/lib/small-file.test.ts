import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readSmallFile } from '../../src/lib/small-file.ts'
import { testFolder } from '../support/process.ts'

describe('a small file', () => {
  it('is read whole, or refused for its size', () => {
    const path = join(testFolder(), 'file')
    writeFileSync(path, 'text')
    expect(readSmallFile(path, 4)).toBe('text')
    expect(() => readSmallFile(path, 3)).toThrow(/larger than 3 bytes/)
  })

  it('is a plain file', () => {
    expect(() => readSmallFile('/dev/null', 10)).toThrow('/dev/null is no plain file')
  })

  it('is no pipe: nobody waits for its writer', () => {
    const path = join(testFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    // In a process of its own, which can be ended if it waits all the same.
    const read = `import { readSmallFile } from ${JSON.stringify(module)}; readSmallFile(${JSON.stringify(path)}, 10)`
    expect(() =>
      execFileSync(process.execPath, ['--input-type=module', '-e', read], { timeout: 10_000, stdio: 'pipe' }),
    ).toThrow(/is no plain file/)
  })
})

const module = join(import.meta.dirname, '../../src/lib/small-file.ts')

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { readPipeOrFile } from '../../src/config/file/pipe-file.ts'
import { testFolder } from '../support/process.ts'

describe('a file that may be a pipe', () => {
  it('may be a device', () => {
    expect(readPipeOrFile('/dev/null', 10)).toBe('')
    expect(() => readPipeOrFile('/dev/zero', 10)).toThrow(/larger than 10 bytes/)
  })

  it('is read until it ends, and waited for no longer than the limit', async () => {
    const path = join(testFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    const reader = spawn(process.execPath, program(path, 10_000), { stdio: 'pipe' })
    const write = 'exec >"$0"; echo first; sleep 0.2; echo second'
    const written = once(spawn('sh', ['-c', write, path], { stdio: 'ignore' }), 'exit')
    expect(await text(reader.stdout)).toBe('first\nsecond\n')
    await written
    // A program that opens it and writes nothing counts like no program at all.
    for (const open of [() => undefined, () => openSync(path, constants.O_RDWR)]) {
      const idle = open()
      const read = () =>
        execFileSync(process.execPath, program(path, 100), { timeout: 10_000, stdio: 'pipe' })
      expect(read).toThrow(/nobody wrote to .* for 100 ms/)
      if (idle !== undefined) closeSync(idle)
    }
  })

  it('has ended where its writers have gone before it is opened', () => {
    const args = ['-c', 'true | "$@"', 'sh', process.execPath, ...program('/dev/stdin', 60_000)]
    expect(execFileSync('sh', args, { timeout: 10_000, encoding: 'utf8' })).toBe('')
  })
})

/** In a process of its own, which can be ended if it waits for ever. */
function program(path: string, idleMsMax: number): readonly string[] {
  const module = JSON.stringify(join(import.meta.dirname, '../../src/config/file/pipe-file.ts'))
  const read = `readPipeOrFile(${JSON.stringify(path)}, 100, ${idleMsMax})`
  return [
    '--input-type=module',
    '-e',
    `import { readPipeOrFile } from ${module}; process.stdout.write(${read})`,
  ]
}

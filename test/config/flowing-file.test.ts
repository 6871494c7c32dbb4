import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { readFlowingFile } from '../../src/config/flowing-file.ts'
import { testFolder } from '../support/process.ts'

describe('a file that may flow', () => {
  it('may be a device', () => {
    expect(readFlowingFile('/dev/null', 10)).toBe('')
    expect(() => readFlowingFile('/dev/zero', 10)).toThrow(/larger than 10 bytes/)
  })

  it('is waited for until it ends, and no longer than it may be silent', async () => {
    const path = join(testFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    const reader = spawn(process.execPath, program(path, 10_000), { stdio: 'pipe' })
    const write = 'exec >"$0"; echo first; sleep 0.2; echo second'
    const written = once(spawn('sh', ['-c', write, path], { stdio: 'ignore' }), 'exit')
    expect(await text(reader.stdout)).toBe('first\nsecond\n')
    await written
    // Whoever opens it and writes nothing counts as little as nobody.
    for (const open of [() => undefined, () => openSync(path, constants.O_RDWR)]) {
      const idle = open()
      const read = () =>
        execFileSync(process.execPath, program(path, 100), { timeout: 10_000, stdio: 'pipe' })
      expect(read).toThrow(/was silent for 100 ms/)
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
  const module = JSON.stringify(join(import.meta.dirname, '../../src/config/flowing-file.ts'))
  const read = `readFlowingFile(${JSON.stringify(path)}, 100, ${idleMsMax})`
  return [
    '--input-type=module',
    '-e',
    `import { readFlowingFile } from ${module}; process.stdout.write(${read})`,
  ]
}

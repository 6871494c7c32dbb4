import { lookup } from 'node:dns/promises'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { until } from '../support/app.ts'
import { startProgram } from '../support/process.ts'

/** Those on which names are looked up, among others; Linux names them. */
function poolOf(pid: number): number {
  const names = readdirSync(`/proc/${pid}/task`).map((task) =>
    readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').trim(),
  )
  return names.filter((name) => name === 'libuv-worker').length
}

it.runIf(process.platform === 'linux')(
  'the program has threads enough that some names which nobody answers for do not keep all others waiting',
  async () => {
    await lookup('localhost')
    expect(poolOf(process.pid)).toBeGreaterThan(0)
    for (const [given, threads] of [
      [undefined, 16],
      ['6', 6],
    ] as const) {
      const env = given === undefined ? {} : { UV_THREADPOOL_SIZE: given }
      const program = startProgram(['sandbox', '--port', '0', '--rate', '0/m', '--history', '0'], env)
      await until('it serves', () => program.stdout().includes('baseUrl: '), 15_000)
      expect(poolOf(program.pid)).toBe(threads)
      program.kill('SIGTERM')
      expect(await program.ended()).toBe(0)
    }
  },
)

import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { onTestFinished } from '../support/finished.ts'
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
    // It accepts and never answers: the command has looked up its name, and waits.
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const [given, threads] of [
      [undefined, 16],
      ['6', 6],
    ] as const) {
      const env = given === undefined ? {} : { UV_THREADPOOL_SIZE: given }
      const program = startProgram(['status', '--url', `http://localhost:${port}`], env)
      await once(server, 'connection', { signal: AbortSignal.timeout(15_000) })
      expect(poolOf(program.pid)).toBe(threads)
      program.kill('SIGKILL')
      await program.ended()
    }
  },
)

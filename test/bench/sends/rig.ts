import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { endsWithUs } from './process.ts'

/** What every arm is measured with: a Redis, a receiver in a process of its own, a folder. */
export interface Rig {
  readonly redis: RedisServer
  readonly receiver: { readonly url: string; readonly process: ChildProcess }
  readonly folder: string
  dispose(): Promise<void>
}

/** One arm on a busy machine. */
const armTimeoutMs = 300_000

export async function startRig(): Promise<Rig> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-sends-'))
  const redis = await startRedis()
  const child = endsWithUs(fork(join(import.meta.dirname, 'receiver.ts')))
  const { port } = await message<{ port: number }>(child, 'port')
  return {
    ...{ redis, folder, receiver: { url: `http://127.0.0.1:${port}`, process: child } },
    async dispose() {
      child.kill()
      await redis.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The next message that has this key. */
export function message<T>(from: ChildProcess, key: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no ${key} within ${armTimeoutMs} ms`)), armTimeoutMs)
    const listen = (told: object) => {
      if (!(key in told)) return
      clearTimeout(late)
      from.off('message', listen)
      resolve(told as T)
    }
    from.on('message', listen)
  })
}

export async function kill(processes: readonly ChildProcess[], signal: NodeJS.Signals): Promise<void> {
  await Promise.all(
    processes.map(
      (each) =>
        new Promise<void>((resolve) => {
          if (each.exitCode !== null || each.signalCode !== null) return resolve()
          each.once('exit', () => resolve())
          each.kill(signal)
        }),
    ),
  )
}

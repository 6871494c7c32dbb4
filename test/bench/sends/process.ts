import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Of this checkout. */
export const main = join(import.meta.dirname, '../../../src/main.ts')
/** As the image, the unit and the archive start it. */
const asInTheImage = ['--max-semi-space-size=16', '--max-old-space-size=384']
/** Linux counts CPU time in these, for whoever looks from outside. */
const tickMs = 10

/** Kills the child with this process, however that ends, so that a bench which is broken off leaves nothing behind. */
export function endsWithUs<T extends ChildProcess>(child: T): T {
  const end = () => child.kill('SIGKILL')
  process.on('exit', end)
  child.once('exit', () => process.off('exit', end))
  return child
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

export function startBridge(
  args: readonly string[],
  { program = main, flags = [] }: { program?: string; flags?: readonly string[] } = {},
): ChildProcess {
  return endsWithUs(
    spawn(process.execPath, [...asInTheImage, ...flags, program, 'run', ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, MALLOC_ARENA_MAX: '2' },
    }),
  )
}

/** CPU time since its start, in milliseconds. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * tickMs
}

/** By a clock that all processes of the machine share, in milliseconds. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Zero for one that has ended. */
export function residentMb(pid: number): number {
  try {
    const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kb ?? 0) / 1_024
  } catch {
    return 0
  }
}

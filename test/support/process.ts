import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from './finished.ts'
import { afterOwnMs, countWaits } from './own-time.ts'
import { until } from './until.ts'

/** The real program as its own process: what signals, kills and exit codes are tested on. */
export interface Program {
  readonly child: ChildProcess
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Log lines that are JSON. */
  lines(): Record<string, unknown>[]
  kill(signal: NodeJS.Signals): void
  /** Resolves to the exit code (or the signal's name) within the limit. */
  ended(limitMs?: number): Promise<number | string>
  /** Resolves to the first line whose `msg` is this. */
  logged(msg: string, limitMs?: number): Promise<Record<string, unknown>>
}

const ownCheckout = join(import.meta.dirname, '../..')
/** What Node.js made of the sources: the first program that starts leaves it, every later one starts in half the time. */
const compiled = join(import.meta.dirname, '../../node_modules/.cache/alert-bridge-test')

/** Started in a folder of its own; killed, and the folder removed, when the test ends. */
export function startProgram(
  args: readonly string[],
  env: Record<string, string> = {},
  /** A file that takes the output in the place of `stdout()`. */
  outFd?: number,
  /** A checkout of another version, with its packages. */
  checkout?: string,
): Program {
  const main = join(checkout ?? ownCheckout, 'src/main.ts')
  const child = spawn(process.execPath, [main, ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
      NODE_COMPILE_CACHE: compiled,
      ...env,
    },
    stdio: ['ignore', outFd ?? 'pipe', 'pipe'],
  })
  countWaits(child.pid)
  const text = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (text.out += chunk))
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text.err += chunk))
  const end = Promise.withResolvers<number | string>()
  child.once('close', (code, signal) => end.resolve(code ?? signal ?? 'unknown'))
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await end.promise
  })
  const stdout = () => text.out
  const stderr = () => text.err
  // Asked for again and again while the program runs: each line is read once.
  const known: Record<string, unknown>[] = []
  let readTo = 0
  const lines = () => {
    const end = text.out.lastIndexOf('\n') + 1
    known.push(...text.out.slice(readTo, end).split('\n').flatMap(parsed))
    readTo = end
    return known
  }
  return {
    child,
    pid: child.pid ?? 0,
    stdout,
    stderr,
    lines,
    kill: (signal) => void child.kill(signal),
    async ended(limitMs = 15_000) {
      const late = () => end.reject(new Error(`still running after ${limitMs} ms:\n${stdout()}`))
      const limit = afterOwnMs(limitMs, late)
      return end.promise.finally(() => limit.off())
    },
    async logged(msg, limitMs = 10_000) {
      const find = () => lines().find((line) => line['msg'] === msg)
      await until(`log line "${msg}" (${stderr()})`, () => find() !== undefined, limitMs)
      return find() ?? {}
    },
  }
}

/** A folder for one test, removed when it ends. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'alert-bridge-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function writeConfig(text: string, folder: string = testFolder()): string {
  const path = join(folder, 'config.yaml')
  writeFileSync(path, text)
  return path
}

function parsed(line: string): Record<string, unknown>[] {
  if (!line.startsWith('{')) return []
  try {
    return [JSON.parse(line) as Record<string, unknown>]
  } catch {
    return []
  }
}

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { gathered, lineWriter } from '../../src/telemetry/log-output.ts'
import { testFolder } from '../support/process.ts'

it('what takes no lines costs lines and raises nothing; what was lost is said once', () => {
  const path = join(testFolder(), 'log')
  closeSync(openSync(path, 'w'))
  // A descriptor that takes nothing, and then one of the same number that does: the disk has room again.
  const fd = openSync(path, 'r')
  const { write } = lineWriter(fd)
  for (let line = 0; line < 5; line += 1) write(`{"line":${line}}\n`)
  closeSync(fd)
  expect(openSync(path, 'a')).toBe(fd)
  onTestFinished(() => closeSync(fd))
  write('{"line":5}\n')
  write('{"line":6}\n')
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'warn', lost: 5, msg: 'log lines were lost' },
    { line: 5 },
    { line: 6 },
  ])
})

it('lines of one turn are written together, the first of them at once', async () => {
  const written: string[] = []
  const { write, flush } = gathered({ write: (text) => void written.push(text) })
  for (const line of ['1', '2', '3']) write(`${line}\n`)
  expect(written).toEqual(['1\n'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(written).toEqual(['1\n', '2\n3\n'])
  write('4\n')
  write('5\n')
  // As when the process ends.
  flush()
  expect(written.slice(2)).toEqual(['4\n', '5\n'])
})

it('a pipe that nobody reads keeps the bridge waiting once, and what is torn does not spoil the next line', () => {
  const path = join(testFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  onTestFinished(() => closeSync(pipe))
  const { write } = lineWriter(pipe)
  const startMs = performance.now()
  // Too long to be written at once or not at all.
  for (let line = 0; line < 50; line += 1) write(`${JSON.stringify({ line, filler: 'x'.repeat(9_000) })}\n`)
  const tookMs = performance.now() - startMs
  expect(tookMs).toBeGreaterThan(400)
  expect(tookMs).toBeLessThan(2_000)
  const before = drain(pipe)
  write('{"line":50}\n')
  const whole = `${before}${drain(pipe)}`.trim().split('\n')
  const readable = whole.flatMap((line) => {
    try {
      return [JSON.parse(line) as { line?: number; lost?: number }]
    } catch {
      return []
    }
  })
  expect(whole.length - readable.length).toBeLessThanOrEqual(1)
  expect(readable.at(-1)).toEqual({ line: 50 })
  const lost = readable.at(-2)?.lost ?? 0
  expect(lost + readable.length - 2).toBe(50)
})

it('a pipe that is read slowly keeps the bridge waiting for one share of the time, however many lines there are', async () => {
  const path = join(testFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  onTestFinished(() => closeSync(pipe))
  // 200 KB a second, which every line finds full a moment later.
  const script = `const { openSync, readSync } = require('node:fs')
    const fd = openSync(process.argv[1], 'r')
    setInterval(() => readSync(fd, Buffer.alloc(4096)), 20)
    process.stdout.write('reads')`
  const reader = spawn(process.execPath, ['--eval', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void reader.kill('SIGKILL'))
  await once(reader.stdout, 'data')
  const { write } = lineWriter(pipe)
  const startMs = performance.now()
  for (let line = 0; line < 120; line += 1) write(`${'x'.repeat(9_000)}\n`)
  // A wait for each line would come to five seconds.
  expect(performance.now() - startMs).toBeLessThan(2_000)
})

/** All that is in the pipe now. */
function drain(pipe: number): string {
  const chunk = Buffer.alloc(1 << 20)
  try {
    return chunk.toString('utf8', 0, readSync(pipe, chunk))
  } catch {
    return ''
  }
}

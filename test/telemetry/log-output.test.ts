import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { lineWriter } from '../../src/telemetry/log-output.ts'
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

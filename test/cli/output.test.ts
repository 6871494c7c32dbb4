import { closeSync, openSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { startProgram, writeConfig } from '../support/process.ts'

it('an output that cannot be written is one sentence and exit code 1', async () => {
  const file = openSync(writeConfig('redis: {}'), 'r')
  onTestFinished(() => closeSync(file))
  const program = startProgram(['config-schema'], {}, file)
  expect(await program.ended()).toBe(1)
  expect(program.stderr()).toMatch(/^The output cannot be written: EBADF[^\n]*\.\n$/)
})

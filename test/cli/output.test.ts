import { exec } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { startProgram, writeConfig } from '../support/process.ts'

it('an output that cannot be written is one sentence and exit code 1', async () => {
  const file = openSync(writeConfig('redis: {}'), 'r')
  onTestFinished(() => closeSync(file))
  const program = startProgram(['config-schema'], {}, file)
  expect(await program.ended()).toBe(1)
  expect(program.stderr()).toMatch(/^The output cannot be written: EBADF[^\n]*\.\n$/)
})

it('an output of more than a pipe takes at once reaches a reader that begins late', async () => {
  const command = `${JSON.stringify(process.execPath)} src/main.ts config-schema`
  const { stdout } = await promisify(exec)(`${command} | (sleep 2; cat)`, { maxBuffer: 10_000_000 })
  expect(() => JSON.parse(stdout)).not.toThrow()
})

import { exec } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { cli } from '../support/cli.ts'
import { startProgram, testFolder, writeConfig } from '../support/process.ts'

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

const hostile = 'x\u009b2J\u001b[2J\u202eevil\u2028\u0007'
const unsafe = /[\p{Cc}\u2028\u202a-\u202e]/u

it('what others wrote is written out, also where a command prints a whole text as it has it', async () => {
  const file = join(testFolder(), 'alert.json')
  writeFileSync(
    file,
    JSON.stringify({ id: 7, firedAt: '2026-11-21T05:30:00Z', kind: hostile, symbol: hostile }),
  )
  const config = writeConfig(`
    sources: { main: { baseUrl: "https://api.example.com", token: t } }
    sinks: { hook: { type: webhook, url: "https://hooks.example.com/" } }
    routes: [{ sinks: [hook], match: { symbol: [a] } }]
  `)
  const { out } = await cli(['explain', file, '--config', config, '--json'])
  expect(out.replaceAll('\n', '')).not.toMatch(unsafe)
  expect(JSON.parse(out)).toMatchObject({ alert: { kind: hostile, symbol: hostile } })
})

it('and in the sentence of a failure', async () => {
  const { err, code } = await cli(['api', 'GET', `/api/${hostile}`])
  expect(code).toBe(2)
  expect(err).toContain('There is no endpoint /api/x\\u009b2J\\u001b[2J\\u202eevil\\u2028\\u0007;')
  expect(err.replaceAll('\n', '')).not.toMatch(unsafe)
})

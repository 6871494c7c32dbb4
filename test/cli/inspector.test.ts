import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { startProgram } from '../support/process.ts'
import { until } from '../support/until.ts'

it('a signal opens no debugger, through which whoever is on this host could do everything', async () => {
  const program = startProgram(['sandbox', '--port', '0', '--rate', '0/m', '--history', '0'])
  await until('it serves', () => program.stdout().includes('baseUrl: '), 15_000)
  const [, url = ''] = /baseUrl: (\S+)/.exec(program.stdout()) ?? []
  program.kill('SIGUSR1')
  // It goes on, and a debugger would have said by now where it listens.
  for (let asked = 0; asked < 5; asked += 1) expect((await fetch(url)).status).toBe(401)
  program.kill('SIGTERM')
  expect(await program.ended()).toBe(0)
  expect(program.stderr()).toBe('')
})

it('nor while Node.js itself still starts, where we say how it is started', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  for (const name of ['cli', 'demo'])
    expect(scripts[name]).toContain('exec node --disable-sigusr1 src/main.ts')
})

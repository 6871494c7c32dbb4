import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseRate, sandboxCommand } from '../../src/cli/sandbox.ts'

const module = join(import.meta.dirname, '../../src/cli/sandbox.ts')

/** The command in a process of its own, up to the first output. */
async function start(...args: string[]) {
  const script = `const { sandboxCommand } = await import(${JSON.stringify(module)})
    await sandboxCommand().parseAsync(process.argv.slice(1), { from: 'user' })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, '--', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [chunk] = await once(child.stdout, 'data')
  return { child, output: String(chunk) }
}

describe('the sandbox command', () => {
  it('prints where it serves, with which token, and a line to try; and ends by a signal with 0', async () => {
    const { child, output } = await start(
      '--port',
      '0',
      '--token',
      'my-token',
      '--history',
      '120',
      '--rate',
      '0/m',
    )
    const [, url] = /baseUrl: (\S+)/.exec(output) ?? []
    expect(output).toContain(`\n  export MARKET_DATA_URL=${url} MARKET_DATA_TOKEN=my-token\n`)
    expect(output).toContain(`curl -H 'Authorization: Bearer my-token' ${url}/api/v1/alerts/deliveries`)
    const response = await fetch(`${url}/api/v1/alerts/deliveries`, {
      headers: { authorization: 'Bearer my-token' },
    })
    expect(await response.json()).toMatchObject({ meta: { total: 120, lastPage: 2 } })
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('prints lines that mean to a shell what they say, whatever the token is made of', async () => {
    const token = `it's;$HOME|"x"*&\\`
    const { child, output } = await start('--port', '0', '--token', token, '--history', '0', '--rate', '0/m')
    const [line = ''] = /^ {2}export .*$/m.exec(output) ?? []
    const [header = ''] = /(?<=curl -H )'.*'(?= http)/.exec(output) ?? []
    const echo = `${line}; printf '%s\\n' "$MARKET_DATA_TOKEN" "$MARKET_DATA_URL" ${header}`
    const [named, url, sent] = execFileSync('sh', ['-c', echo], { encoding: 'utf8' }).split('\n')
    expect([named, sent]).toEqual([token, `Authorization: Bearer ${token}`])
    expect(output).toContain(`  baseUrl: ${url}\n`)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('prints the addresses as JSON, opens the control port and keeps the budget it was given', async () => {
    const { child, output } = await start(
      '--json',
      '--port',
      '0',
      '--control-port',
      '0',
      '--units-per-day',
      '1',
    )
    const { baseUrl, controlUrl, token } = JSON.parse(output) as Record<string, string>
    const ask = () => fetch(`${baseUrl}/api/v1/alerts`, { headers: { authorization: `Bearer ${token}` } })
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 429])
    expect(await (await fetch(`${controlUrl}/state`)).json()).toMatchObject({ unitsUsed: 1 })
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it.each([
    [['--port', 'http'], '--port: "http" is no whole number from 0 to 65535'],
    [['--port', '70000'], '--port: "70000" is no whole number'],
    [['--rate', 'often'], '--rate: "often" is no rate; 30/m, 2/s and 5/h are'],
    [['--evaluations', 'yes'], '--evaluations: "yes" is none of true, noisy, wrong, null'],
    [['--history', '-1'], '--history: "-1" is no whole number'],
    [['--units-per-day', '1.5'], '--units-per-day: "1.5" is no whole number'],
    [['--token', 'two words'], '--token: expected a token'],
  ])('says in one sentence what is wrong with %j', async (args, sentence) => {
    await expect(sandboxCommand().parseAsync(args, { from: 'user' })).rejects.toThrow(sentence)
  })

  it.each([
    ['30/m', 30],
    ['2/s', 120],
    ['6/h', 0.1],
    ['0.5/m', 0.5],
    ['0/m', 0],
  ])('reads the rate %s', (text, perMinute) => {
    expect(parseRate(text)).toBeCloseTo(perMinute)
  })
})

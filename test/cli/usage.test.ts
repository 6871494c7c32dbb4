import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { commandNames, createProgram } from '../../src/cli/cli.ts'
import { cli } from '../support/cli.ts'

/** A wrong command line is told from what failed: exit code 2, and nothing is begun or asked. */

const folder = mkdtempSync(join(tmpdir(), 'usage-'))
afterAll(() => rmSync(folder, { recursive: true }))
const trace = join(folder, 'trace.txt')
writeFileSync(trace, '2026-11-21T08:45:00Z\n')
const nobody = ['--url', 'http://127.0.0.1:1']

const commands: Record<string, readonly (readonly string[])[]> = {
  init: [
    ['a', 'b'],
    ['--units-per-day', '0'],
    ['--sink', 'pigeon'],
    ['--sink', 'slack,url=https://a.example'],
  ],
  run: [[], ['--config'], ['--config', 'x.yaml', '--role', 'boss'], ['--config', 'x.yaml', 'more']],
  'check-config': [[], ['a.yaml', 'b.yaml'], ['a.yaml', '--replay', '7d', '--show'], ['a.yaml', ...nobody]],
  'config-schema': [['more']],
  explain: [
    [],
    ['alert.json'],
    ['alert.json', '--config', 'x.yaml', '--at', 'foo'],
    ['alert.json', '--config', 'x.yaml', '--url', 'foo'],
  ],
  'send-test': [[], ['sink'], ['sink', 'more', '--config', 'x.yaml']],
  status: [['more'], ['--url', 'foo'], ['--url']],
  rules: [['more'], ['--url', 'foo'], ['--source']],
  deliveries: [
    ['foo'],
    ['main.1', '--follow'],
    ['--state', 'lost'],
    ['--limit', '0'],
    ['--limit', '100001'],
    ['--follow', '--cursor', 'x'],
    ['main.1', 'main.2'],
  ],
  why: [[], ['foo'], ['main.9007199254740993'], ['main.1', 'main.2']],
  completion: [[], ['tcsh'], ['bash', 'more']],
  'dead-letters': [
    [],
    ['foo'],
    ['retry'],
    ['drop'],
    ['retry', 'foo'],
    ['retry', 'main.9007199254740993'],
    ['list', '--limit', 'x'],
    ['list', '--since', 'foo'],
    ['retry', '--all', '--since', '99999999999d'],
    ['retry', '--all', '--at', 'foo'],
    // An order takes all that are named: whoever wants one of them must not lose the others.
    ['retry', '--all', '--limit', '1', ...nobody],
    ['drop', '--sink', 'slack', '--limit', '50', ...nobody],
  ],
  quarantine: [
    ...[[], ['foo'], ['retry'], ['drop', 'foo'], ['list', '--limit', 'x'], ['list', '--limit', '0']],
    ['drop', '--all', '--limit', '1', ...nobody],
  ],
  replay: [
    [],
    ['foo'],
    ['main.9007199254740993'],
    ['main.1', '--since', '2h'],
    ['main.1', '--until', '2h'],
    ['--since', 'foo'],
    ['--since', '2h', '--until', 'foo'],
    ['--since', '2h', '--at', 'foo'],
  ],
  orphans: [
    [],
    ['foo'],
    ['move'],
    ['move', 'old'],
    ['drop'],
    ['drop', 'old', '--kind', 'foo'],
    ['list', 'old', '--limit', '0'],
    ['drop', 'old', '--limit', '1', ...nobody],
  ],
  pause: [[], ['a', 'b']],
  resume: [[], ['a', 'b']],
  silence: [
    [],
    ['foo'],
    ['add'],
    ['add', '--match', 'symbol=a'],
    ['add', '--match', 'symbol=a', '--for', 'foo'],
    ['add', '--match', 'symbol=a', '--for', '0s'],
    ['add', '--match', 'symbol=a', '--until', 'foo'],
    ['add', '--match', 'symbol=a', '--for', '1h', '--until', '2026-11-21T08:45:00Z'],
    ['add', '--match', 'colour=red', '--for', '1h'],
    ['add', '--match', 'isRead=perhaps', '--for', '1h'],
    ['list', 'more'],
    ['list', '--bad'],
    ['expire'],
  ],
  plan: [
    [],
    ['--hours', 'foo', '--config', 'x.yaml'],
    ['--trace', trace],
    ['--hours', '99999', '--config', 'x.yaml'],
    ['--trace', trace, '--units-per-day', '-1'],
    ['--trace', trace, '--units-per-day', '99999999'],
    ['--trace', trace, '--units-per-day', '1', '--time-zone', 'Tehran'],
  ],
  api: [
    [],
    ['GET'],
    ['GET', '/api/v1/nothing', '--dry-run'],
    ['GET', '/api/v1/macro'],
    ['GET', '/api/v1/macro', '--dry-run', '--query', 'days'],
    ['GET', '/api/v1/macro', '--dry-run', 'more'],
    ['PUT', '/api/v1/macro', '--dry-run'],
  ],
  sandbox: [
    ['--port', 'foo'],
    ['--rate', 'often'],
    ['--token', 'a b'],
    ['--seed', 'x'],
  ],
  demo: [
    ['--seconds', 'foo'],
    ['--rate', '-1'],
  ],
}
const lines = Object.entries(commands).flatMap(([command, tails]) =>
  [...tails, ['--no-such-option']].map((tail) => [command, ...tail]),
)

describe('a wrong command line ends with exit code 2 and a sentence', () => {
  it.each([[], ['no-such-command'], ['--log-level', 'loud', 'status'], ...lines].map((line) => [line]))(
    '%j',
    async (line) => {
      const { code, err } = await cli(line)
      expect([code, err]).toEqual([2, expect.stringMatching(/\S/)])
      expect(err).not.toMatch(/unexpected:|No bridge answers/)
      // Nothing at all, or a group of commands alone, is answered by the list of what there is.
      const isUnnamed = line.length === 0 || (line.length === 1 && line[0] === 'silence')
      expect(err).toMatch(isUnnamed ? /^Usage: / : /^[^\n]+\n$/)
    },
  )

  it('and every command that there is was tried', async () => {
    const { out } = await cli(['--help'])
    const named = [...out.matchAll(/^ {2}([a-z][a-z-]+)/gm)].map(([, name]) => name)
    expect(named.filter((name) => name !== 'help').sort()).toEqual(Object.keys(commands).sort())
  })
})

it.each<[string[], number, RegExp]>([
  [['run'], 2, /--config/],
  [['status', '--url', 'http://127.0.0.1:9'], 1, /No bridge answers/],
  [['deliveries', '12', '--url', 'http://127.0.0.1:9'], 2, /SOURCE\.ID/],
  [['replay'], 2, /ids/],
  [['dead-letters', 'burn'], 2, /list, retry or drop/],
  [['demo', '--seconds', 'ten'], 2, /--seconds/],
])(
  'the command line %j ends with %d, and says what is wrong and no more',
  async (line, expected, sentence) => {
    const { code, err } = await cli(line)
    expect([code, err]).toEqual([expected, expect.stringMatching(sentence)])
    expect(err).not.toMatch(/\n\s+at /)
  },
)

it('every command has examples in its help, of options that it has', async () => {
  for (const name of commandNames) {
    const { out } = await cli([name, '--help'])
    const [help = '', examples = ''] = out.split('Examples:')
    const own = examples.split('\n').filter((line) => line.includes(`alert-bridge ${name}`))
    expect([name, own.length]).toEqual([name, expect.toSatisfy((count: number) => count > 0)])
    if (name === 'silence') continue
    for (const line of own)
      for (const [option] of (line.split(`alert-bridge ${name}`).at(-1) ?? '').matchAll(/--[a-z-]+/g))
        expect(help).toContain(option)
  }
})

it.each([
  'http://me:canaryCanary1@127.0.0.1:1',
  'http://127.0.0.1:1/?token=canaryCanary1',
  'htp://me:canaryCanary1@127.0.0.1:1',
  'me:canaryCanary1@127.0.0.1:1',
])('an address with a login or a query is refused, and not repeated: %s', async (url) => {
  const { code, err } = await cli(['status', '--url', url])
  expect([code, err]).toEqual([2, expect.stringMatching(/^--url: .*without a login/)])
  expect(err).not.toContain('canary')
})

describe('what failed ends with exit code 1', () => {
  it.each([
    ['a bridge that is not there', ['status', ...nobody]],
    ['the same, with an order', ['dead-letters', 'retry', '--all', ...nobody]],
    ['a config that is not there', ['check-config', join(folder, 'none.yaml')]],
    ['a file that is not there', ['plan', '--trace', join(folder, 'none.txt'), '--units-per-day', '9']],
  ])('%s', async (_what, line) => {
    expect((await cli(line)).code).toBe(1)
  })
})

it('a demo whose folder of temporary files is none says so in a sentence', async () => {
  vi.stubEnv('TMPDIR', join(folder, 'none'))
  const { code, err } = await cli(['demo', '--seconds', '1'])
  vi.unstubAllEnvs()
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/^The demo keeps its data in .*none, where .*ENOENT/),
  ])
})

it('--help lists each command with the usage that it has once it is loaded', async () => {
  const usages = async (words: readonly string[]) =>
    (await createProgram(words)).commands.map((each) => [each.name(), each.usage(), each.description()])
  expect(await usages(['--help'])).toEqual(await usages(commandNames))
})

it.each(['--help', '--version', 'help'])('%s ends with exit code 0', async (line) => {
  expect((await cli([line])).code).toBe(0)
})

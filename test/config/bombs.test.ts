import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { loadConfig, parseConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import { computing } from '../support/computing.ts'
import { testFolder, writeConfig } from '../support/process.ts'
import { configText } from './config-text.ts'

vi.setConfig(computing)

/** Files that are small and cost a careless reader minutes: each ends soon, with few and short sentences. */

const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => line(i)).join('')
const withSection = (name: string, text: string) => configText({ [name]: text })

const bombs: Record<string, string> = {
  'aliases of aliases': lines(
    9,
    (i) => `a${i}: &a${i} [${i === 0 ? 'x,'.repeat(9) : `*a${i - 1},`.repeat(9)}]\n`,
  ),
  'an alias of itself': 'a: &a { b: *a, c: *a }\n',
  'many aliases in a list': `a: &a x\nb: [${'*a ,'.repeat(240_000)}]\n`,
  'many aliases as values': `a: &a x\nsinks:\n${lines(60_000, (i) => `  k${i}: *a\n`)}`,
  'a large mapping that many merge': `a: &a {${lines(6_000, (i) => `k${i}: 1,`)}}\nsinks:\n${lines(1_500, (i) => `  s${i}: {<<: *a}\n`)}`,
  'a mapping of one key many times that many merge': `a: &a {${'k: 1,'.repeat(7_000)}}\nsinks:\n${lines(3_000, (i) => `  s${i}: {<<: *a}\n`)}`,
  'many keys': lines(110_000, (i) => `k${i}: 1\n`),
  'many keys in braces': `sinks: {${lines(110_000, (i) => `k${i}: 1,`)}}`,
  'one key many times': 'a: 1\n'.repeat(200_000),
  'many unknown keys': withSection('http', `{ ${lines(5_000, (i) => `listen${i}: 1,`)} }`),
  'many names that are not there': configText({
    sinks: `{${lines(700, (i) => `sink-of-a-long-name-with-number-${i}: { type: webhook, url: "https://x.example/" },`)}}`,
    routes: `[{ sinks: [${lines(700, (i) => `sinc-of-a-long-name-with-number-${i},`)}] }]`,
  }),
  'long keys around many values': `${lines(45, (i) => `${' '.repeat(i)}"${'k'.repeat(10_000)}":\n`)}${' '.repeat(46)}[${'x,'.repeat(15_000)}]`,
  // The longest that a key may be without being refused for its length alone.
  'paths of long keys to many values': `${lines(45, (i) => `${' '.repeat(i)}${'k'.repeat(1_000)}:\n`)}${' '.repeat(46)}[${'x,'.repeat(15_000)}]`,
  'a long key': withSection('http', `{ "${'listen'.repeat(100_000)}": 1 }`),
  'brackets in brackets': '['.repeat(900_000),
  'braces in braces': '{a: '.repeat(240_000),
  'dashes after dashes': `${'- '.repeat(450_000)}x`,
  commas: `{${','.repeat(900_000)}}`,
  'quotes that stay open': 'a: "x\n'.repeat(150_000),
  'empty lines': '\n'.repeat(900_000),
  anchors: '&a '.repeat(300_000),
  'variables that stay open': withSection('dataDir', `"\${A:-x}${'${'.repeat(400_000)}"`),
  'a default that is nearly a number': withSection(
    'retention',
    `{ count: "\${A:-${'9'.repeat(200_000)}x}" }`,
  ),
  'an address that is nearly one': withSection('http', `{ listen: "${'://'.repeat(200_000)}" }`),
  'a sender of spaces': withSection(
    'sinks',
    `{ ops: { type: email, smtp: "smtp://x", to: [a@example.com], from: "${' '.repeat(300_000)}" } }`,
  ),
  'a long time zone': withSection('display', `{ timeZone: "${'Asia/'.repeat(150_000)}" }`),
}

describe('templates and patterns that take long to try', () => {
  const loop = (inner: number) => `{% for i in (1..${inner}) %}{% assign a = i %}{% endfor %}{}`
  const sinks = (count: number, template: (index: number) => string) =>
    `{ ops: { type: webhook, url: "https://x.example" }, ${lines(count, (i) => `s${i}: { type: webhook, url: "https://x.example", template: "${template(i)}" },`)} }`

  it('together have one limit, of processor time', () => {
    const symbol = lines(2_000, (i) => `{ regex: '(a${i}x?){300}' },`)
    const text = configText({
      sinks: sinks(80, (i) => loop(1_000 + i)),
      routes: `[{ match: { symbol: [${symbol}] }, sinks: [ops] }]`,
    })
    const before = process.threadCpuUsage()
    // A tenth of the limit: what is shown is that there is one, and how far it is passed.
    const loaded = parseConfig(text, { env: {}, folder: '/', cpuMsMax: 500 })
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(3_000)
    if (loaded.ok) throw new Error('taken')
    const told = loaded.mistakes.map((mistake) => formatMistake('f', mistake)).join('\n')
    expect(told).toMatch(/template: .*was not tried to the end.* takes too long/)
  })

  it('are given as long by check-config and at the start as at a reload, so that what one takes the others take', () => {
    // As a machine shows it that is as slow as the test wants it to be.
    const usage = vi.spyOn(process, 'threadCpuUsage')
    onTestFinished(() => usage.mockRestore())
    const path = writeConfig(configText({ sinks: sinks(2, (index) => `${index}`) }))
    const takes = (ms: number) => {
      usage.mockImplementation((since) => ({ user: since === undefined ? 0 : ms * 1_000, system: 0 }))
      return [false, true].map((again) => loadConfig(path, {}, { again }).ok)
    }
    expect([takes(4_900), takes(5_100)]).toEqual([
      [true, true],
      [false, false],
    ])
  })

  it('may be large together, and not larger than every alert can be compared with', () => {
    const told = (count: number, pattern: (index: number) => string) => {
      const routes = `[{ match: { symbol: [${lines(count, (i) => `${pattern(i)},`)}] }, sinks: [ops] }]`
      const loaded = parseConfig(configText({ routes }), { env: {}, folder: '/' })
      return loaded.ok ? [] : loaded.mistakes.map((mistake) => formatMistake('f', mistake))
    }
    expect(told(3_000, (i) => `{ glob: 'نماد ${i} و هر چه پس از آن*' }`)).toEqual([])
    expect(told(201, (i) => `{ regex: '[ab]{${499}}${i % 10}' }`).join()).toMatch(
      /routes: .*at most 100000 characters of patterns together.*found 1005/,
    )
  })

  it('count once where they are the same', () => {
    const { ok } = parseConfig(configText({ sinks: sinks(600, () => loop(300)) }), { env: {}, folder: '/' })
    expect(ok).toBe(true)
  })
})

describe('a config that is a bomb', () => {
  it.each(Object.entries(bombs))('%s', (_what, text) => {
    const before = process.threadCpuUsage()
    const loaded = parseConfig(text, { env: {}, folder: '/' })
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(1_000)
    if (loaded.ok) throw new Error('taken')
    expect(loaded.mistakes.length).toBeGreaterThan(0)
    const told = loaded.mistakes.map((mistake) => formatMistake('f', mistake))
    expect(told.length).toBeLessThan(110)
    for (const sentence of told) expect(sentence.length).toBeLessThan(1_000)
  })

  it('may come out of a pipe, whose size nobody knows before', () => {
    const file = writeConfig(configText() + '# long\n'.repeat(200_000), testFolder())
    expect(loadConfig(file, {})).toMatchObject({
      ok: false,
      mistakes: [{ message: expect.stringContaining('larger than') }],
    })
    expect(parseConfig('# long\n'.repeat(200_000), { env: {}, folder: '/' })).toMatchObject({
      ok: false,
      mistakes: [{ message: expect.stringContaining('larger than') }],
    })
  })
})

it('more mistakes than anybody mends at once are counted, not listed', () => {
  const loaded = parseConfig(configText({ http: `{ ${lines(300, (i) => `listen${i}: 1,`)} }` }), {
    env: {},
    folder: '/',
  })
  if (loaded.ok) throw new Error('taken')
  expect(loaded.mistakes.at(-1)).toEqual({ path: '', message: 'there are more mistakes than these 100' })
})

it('a config of a thousand sources and of hundreds of routes and sinks is read', () => {
  const source = (i: number) =>
    `  account-${i}:\n    baseUrl: https://api.example.com\n    token: t${i}\n    budget: { unitsPerDay: 2000 }\n`
  const text = configText({
    sources: `\n${lines(1_000, source)}`,
    sinks: `\n${lines(300, (i) => `  sink-${i}:\n    type: webhook\n    url: https://hooks.example.com/${i}\n    timeout: 5s\n`)}`,
    routes: `\n${lines(600, (i) => `  - match: { kind: [price], symbol: [symbol-${i}] }\n    sinks: [sink-${i % 300}]\n`)}`,
  })
  expect(parseConfig(text, { env: {}, folder: '/' })).toMatchObject({ ok: true, warnings: [] })
})

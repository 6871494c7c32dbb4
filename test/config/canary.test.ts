import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { property } from '../../src/alert/json/json.ts'
import { parseConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import { childOf, isSecret, type Schema } from '../../src/config/outline.ts'
import { showConfig } from '../../src/config/redact.ts'
import { configSchema } from '../../src/config/schema.ts'
import { configText } from './config-text.ts'

/** Puts a canary, in every wrong shape, where a secret or a whole mapping belongs, and listens. */
const canary = 'CANARY7654567'
const shapes: Record<string, unknown> = {
  text: canary,
  number: 7_654_567,
  list: [canary, 7_654_567],
  // Under a key that no mapping of the config has: what a known key may hold is another question.
  mapping: { nosuch: canary },
  'list of mappings': [{ nosuch: canary }],
  nothing: null,
  address: `gopher://me:${canary}@example.com/?key=${canary}`,
}
const example: unknown = parse(readFileSync('config/example.yaml', 'utf8'))
const env = {
  MARKET_DATA_URL: 'https://api.example.com',
  MARKET_DATA_TOKEN: canary,
  WEBHOOK_SECRET: `whsec_${Buffer.from(`${canary}${canary}`).toString('base64')}`,
  WEBHOOK_BEARER: canary,
  SLACK_WEBHOOK_URL: `https://hooks.slack.example.com/${canary}`,
  SMTP_URL: `smtp://user:${canary}@smtp.example.com`,
  ADMIN_TOKEN: canary,
  TICKER_KEY: canary,
  TELEGRAM_TOKEN: `123456:abcdefghijklmnop-${canary}`,
  DISCORD_WEBHOOK_URL: `https://discord.example.com/api/webhooks/1/${canary}`,
  TEAMS_WORKFLOW_URL: `https://teams.example.com/workflows/x?sig=${canary}`,
  PAGERDUTY_KEY: canary.padEnd(32, '0'),
  NTFY_TOPIC: canary,
  NTFY_TOKEN: canary,
}
const encoded = env.WEBHOOK_SECRET.slice('whsec_'.length)

function everythingTold(text: string): string {
  const loaded = parseConfig(text, { env, folder: '.' })
  if (!loaded.ok) return loaded.mistakes.map((mistake) => formatMistake('f', mistake)).join('\n')
  const warnings = loaded.warnings.map((warning) => formatMistake('f', warning))
  return [showConfig(loaded.config), JSON.stringify(loaded), ...warnings].join('\n')
}

function expectSilence(told: string): void {
  expect(told).not.toContain('7654567')
  expect(told).not.toContain(encoded)
}

describe('nothing that is told of the example holds a secret', () => {
  it('as it is', () => {
    const told = everythingTold(stringify(example))
    expect(told).toContain('[redacted]')
    expectSilence(told)
  })

  it.each(placesOf(example, configSchema))('with a wrong value at %s', (_, path) => {
    for (const shape of Object.values(shapes)) expectSilence(everythingTold(stringify(replaced(path, shape))))
  })

  it('when the file is broken off anywhere', () => {
    const text = stringify(example).replace(/\$\{(\w+)\}/g, (_, name) => property(env, name) as string)
    for (let end = 0; end < text.length; end += 23) expectSilence(everythingTold(text.slice(0, end)))
  })
})

describe('a secret at a place that is none', () => {
  const secret = 'Kq9Zx7Rw9Vt3Lm5Np8Qd'
  const hex = '0123456789abcdef0123456789abcdef'
  const sink = (more: string) => configText({ sinks: `{ ops: { type: webhook, ${more} } }` })
  it.each([
    ['an address with a blank in it', sink(`url: "https://h ooks.example.com/a/${secret}"`)],
    ['an address with a blank in its token', sink(`url: "https://h.example.com/a/xx ${secret}"`)],
    ['the name of another key', sink(`url: "https://h.example.com/a", format: ${secret}`)],
    ['the name of another key, in hex', sink(`url: "https://h.example.com/a", format: ${hex}`)],
    ['a key, since its colon is missing', sink(`url: "https://h.example.com/a", auth: { bearer${secret}: }`)],
    ['a name in a template', sink(`url: "https://h.example.com/a", template: '{ "a": "{{ ${secret} }}" }'`)],
    ['a filter of a template', sink(`url: "https://h.example.com/a", template: '{{ why | ${secret} }}'`)],
    ['a word of a template', sink(`url: "https://h.example.com/a", template: 'key ${secret}'`)],
    ['a pattern', configText({ routes: `[{ match: { symbol: { regex: "${secret}(" } }, sinks: [ops] }]` })],
    [
      'a key that is there twice',
      sink(`url: "https://h.example.com/a", headers: { ${secret}: a, ${secret}: b }`),
    ],
    ['a key with a blank in it', sink(`url: "https://h.example.com/a", auth: { beare ${secret}: }`)],
  ])('is not repeated: %s', (_, text) => {
    const loaded = parseConfig(text, { env, folder: '.' })
    const told = loaded.ok
      ? showConfig(loaded.config)
      : loaded.mistakes.map((each) => formatMistake('f', each)).join()
    expect(told).not.toContain(secret.slice(2))
    expect(told).not.toContain(hex)
  })
})

/** Every place of a secret, and of a mapping: where a secret may land when a line is indented wrongly. */
function placesOf(value: unknown, schema: Schema | undefined, path: string[] = []): [string, string[]][] {
  if (schema !== undefined && isSecret(schema)) return [[path.join('.'), path]]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const inner = Object.entries(value).flatMap(([key, child]) =>
    placesOf(child, schema && childOf(schema, key, value), [...path, key]),
  )
  return path.length === 0 ? inner : [[path.join('.'), path], ...inner]
}

function replaced(path: readonly string[], shape: unknown): unknown {
  const copy = structuredClone(example)
  const parent = path.slice(0, -1).reduce<unknown>((value, key) => property(value, key), copy)
  Object.assign(parent as object, { [String(path.at(-1))]: shape })
  return copy
}

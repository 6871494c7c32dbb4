import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import { coreOf, type Schema, shapeOf } from '../../src/config/outline.ts'
import { configSchema } from '../../src/config/schema.ts'

const env = {
  MARKET_DATA_URL: 'https://api.example.com',
  MARKET_DATA_TOKEN: 'token',
  WEBHOOK_URL: 'https://hooks.example.com/alerts',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  WEBHOOK_BEARER: 'bearer',
  SLACK_WEBHOOK_URL: 'https://hooks.slack.example.com/services/x',
  SMTP_URL: 'smtp://user:password@smtp.example.com:587',
  TICKER_KEY: 'key',
  TELEGRAM_TOKEN: '123456:abcdefghijklmnopqrstuvwxyz',
  DISCORD_WEBHOOK_URL: 'https://discord.example.com/api/webhooks/1/x',
  TEAMS_WORKFLOW_URL: 'https://teams.example.com/workflows/x?sig=x',
  PAGERDUTY_KEY: 'a'.repeat(32),
  NTFY_TOPIC: 'desk',
  NTFY_TOKEN: 'tk_x',
}

function load(path: string) {
  const loaded = loadConfig(path, env)
  if (loaded.ok) return loaded
  throw new Error(loaded.mistakes.map((mistake) => formatMistake(path, mistake)).join('\n'))
}

describe('config/minimal.yaml', () => {
  it('needs an address, a token and a receiver, and nothing else', () => {
    const text = readFileSync('config/minimal.yaml', 'utf8')
    expect(text.match(/\$\{\w+/g)).toHaveLength(3)
    expect(Object.keys(load('config/minimal.yaml').config.sinks)).toEqual(['receiver'])
  })
})

describe('config/example.yaml', () => {
  const text = readFileSync('config/example.yaml', 'utf8')

  it('loads without a warning', () => {
    expect(load('config/example.yaml').warnings).toEqual([])
  })

  it.each(['config/minimal.yaml', 'config/example.yaml'])('%s tells editors of the schema', (path) => {
    expect(readFileSync(path, 'utf8').split('\n')[0]).toBe(
      '# yaml-language-server: $schema=./alert-bridge.schema.json',
    )
  })

  it('names every key that there is', () => {
    const missing = keysUnder(configSchema, parse(text)).filter(
      (key) => !new RegExp(`\\b${key}\\b`).test(text),
    )
    expect(missing).toEqual([])
  })

  it('shows the defaults where it says so', () => {
    const shown = load('config/example.yaml').config
    const least = load('config/minimal.yaml').config
    const { holidays: _, ...poll } = shown.sources['main']?.poll ?? {}
    expect(least.sources['main']?.poll).toEqual({ ...poll, holidays: [] })
    expect(shown.sources['main']?.budget).toEqual(least.sources['main']?.budget)
    expect(shown.sources['main']?.context).toEqual(least.sources['main']?.context)
    expect(shown.retention).toEqual(least.retention)
    expect(shown.display).toEqual(least.display)
    expect(shown.redis).toEqual(least.redis)
  })
})

/** Every key of the schema, of all types of sinks. */
function keysUnder(schema: Schema, value: unknown): string[] {
  const definition = coreOf(schema)._zod.def as unknown as Record<string, unknown>
  if (definition['type'] === 'union') {
    return (definition['options'] as Schema[]).flatMap((option) => keysUnder(option, value))
  }
  if (definition['type'] === 'record') return keysUnder(definition['valueType'] as Schema, value)
  if (definition['type'] === 'array') return keysUnder(definition['element'] as Schema, value)
  const shape = shapeOf(schema, value)
  if (shape === undefined) return []
  return Object.entries(shape).flatMap(([key, child]) => [key, ...keysUnder(child, value)])
}

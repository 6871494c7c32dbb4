import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { conceal } from '../../src/config/conceal.ts'
import { loadConfig, parseConfig } from '../../src/config/load.ts'
import { publicHashOf, redactConfig, showConfig } from '../../src/config/redact.ts'
import type { Config } from '../../src/config/schema.ts'
import { Secret } from '../../src/lib/secret.ts'
import { configText, fixture, fixtureEnv, fixtures, fixturesFolder } from './config-text.ts'

function load(text: string): Config {
  const loaded = parseConfig(text, { env: fixtureEnv, folder: join(fixturesFolder, 'good') })
  if (loaded.ok) return loaded.config
  throw new Error(JSON.stringify(loaded.mistakes))
}

describe('--show', () => {
  it('says of a secret only that it is there, or which file holds it', () => {
    const loaded = loadConfig(fixture('good/twins').path, fixtureEnv)
    const shown = loaded.ok ? redactConfig(loaded.config) : {}
    expect(shown).toMatchObject({
      http: { adminToken: `[from file ${fixturesFolder}/secrets/token]` },
      sinks: { slack: { url: `[from file ${fixturesFolder}/secrets/slack-url]` } },
    })
    expect(redactConfig(load(configText()))).toMatchObject({ sources: { main: { token: '[redacted]' } } })
  })

  it('takes what may be a credential out of addresses', () => {
    const sinks =
      '{ ops: { type: webhook, url: "https://hooks.example.com/a?key=CANARY&b=CANARY&CANARY&CANARY=&CANARY==#c" } }'
    expect(redactConfig(load(configText({ sinks })))).toMatchObject({
      sinks: {
        ops: {
          url: 'https://hooks.example.com/a?key=[redacted]&b=[redacted]&[redacted]&[redacted]&[redacted]#c',
        },
      },
    })
  })

  it('takes tokens out of the path of a webhook', () => {
    const sinks =
      '{ ops: { type: webhook, url: "https://hooks.example.com/services/B0CANARY1/CANARYcanaryCANARY" } }'
    const config = load(configText({ sinks }))
    expect(redactConfig(config)).toMatchObject({
      sinks: { ops: { url: 'https://hooks.example.com/services/[redacted]/[redacted]' } },
    })
    expect(showConfig(config)).not.toContain('CANARY')
  })

  it('hides the values of headers', () => {
    const sinks = '{ ops: { type: webhook, url: "https://h.example.com", headers: { X-Key: CANARY } } }'
    expect(showConfig(load(configText({ sinks })))).toContain('X-Key: "[redacted]"')
  })

  it('shows no token at a place that is none, however it got there', () => {
    const token = 'sk_live_51H8xYzAbCdEfGhIj'
    const template = `'{ "a": "${token}", "b": "{{ delivery.${token} }}", "c": "\${PUSH_KEY}" }'`
    const sinks = `{ ops: { type: webhook, url: "https://h.example.com", headers: { ${token}: x }, template: ${template} } }`
    const routes = `[{ name: ${token}, match: { symbol: ${token} }, sinks: [ops], context: ["macro:${token}"] }]`
    const loaded = parseConfig(configText({ sinks, routes }), {
      env: { ...fixtureEnv, PUSH_KEY: 'azgdfre34hsdkwlf' },
      folder: '.',
    })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes))
    const shown = showConfig(loaded.config, loaded.hidden)
    expect(shown).not.toMatch(/51H8xYz|azgdfre/)
    expect(shown).toContain('"c": "[redacted]"')
  })

  it('reads each secret once, however much it shows, and shows nothing of two that overlap', () => {
    let reads = 0
    class Counted extends Secret {
      override reveal(): string {
        reads += 1
        return super.reveal()
      }
    }
    const hidden = ['canary-of-a', 'of-a-river', 'x-canary-of-a'].map((text) => new Counted(text))
    const texts = ['see canary-of-a-river.', 'or x-canary-of-a', 'no canary-of']
    expect(texts.map((text) => conceal(text, hidden))).toEqual([
      'see [redacted].',
      'or [redacted]',
      'no canary-of',
    ])
    expect(reads).toBe(hidden.length)
  })

  it('shows nothing that a template gives a name that sounds secret', () => {
    const template = `'{ "user": "desk", "password": "rivercanary", "key": "{{ id }}", "kind": "rivercanary", "auth": true }'`
    const sinks = `{ ops: { type: http, url: "https://h.example.com", template: ${template} } }`
    const shown = showConfig(load(configText({ sinks })))
    expect(shown).toContain(
      '"password": "[redacted]", "key": "{{ id }}", "kind": "rivercanary", "auth": true }',
    )
  })

  it('shows patterns and templates whole: what follows a ? in them is no key of an address', () => {
    const template = `'{ "text": "Really?{{headline}}", "html": "<b>&nbsp;{{headline}}</b>" }'`
    const sinks = `{ ops: { type: webhook, url: "https://h.example.com", template: ${template} } }`
    const patterns = ['(?i)folad', '^(?:price|screen)$', 'https?://example\\.com/a?bcdefgh', 'a?b=cdefg']
    const symbol = JSON.stringify([
      ...patterns.map((regex) => ({ regex })),
      { glob: 'wh?tever' },
      'x?certainly',
    ])
    const routes = `[{ match: { symbol: ${symbol}, rule: { name: { not: { regex: "(?i)draft" } } } }, sinks: [ops] }]`
    const config = load(configText({ sinks, routes }))
    expect(redactConfig(config)).toMatchObject({
      sinks: { ops: { template: template.slice(1, -1) } },
      routes: [
        {
          match: {
            symbol: JSON.parse(symbol),
            rule: { name: [{ not: [{ regex: '(?i)draft' }] }] },
          },
        },
      ],
    })
  })

  it('shows a pattern whole in a mistake too', () => {
    const routes = '[{ match: { symbol: { regex: "(?i)folad:(certainly" } }, sinks: [ops] }]'
    const loaded = parseConfig(configText({ routes }), { env: fixtureEnv, folder: '.' })
    expect(loaded).toMatchObject({ ok: false, mistakes: [{ found: '"(?i)folad:(certainly"' }] })
  })

  it('writes durations, addresses and matchers as they are written in a config', () => {
    const shown = parse(showConfig(load(fixture('good/redis-sentinels').text)))
    expect(shown.redis.sentinels).toEqual(['10.0.0.5:26379', '[fd00::5]:26379'])
    expect(shown.sources.main.poll).toMatchObject({
      minInterval: '2s',
      maxInterval: '15m',
      seenWindow: '30d',
    })
    expect(shown.http.listen).toBe('127.0.0.1:8080')
    expect(parse(showConfig(load(fixture('good/routes').text))).routes[0].match.ruleId).toEqual(['12'])
  })

  const reloadable = fixtures('good').filter(({ text }) => !/CANARY|File:|unix:/.test(text))
  it.each(reloadable)('of $name is a config again, and the same one', ({ text }) => {
    const shown = showConfig(load(text))
    expect(showConfig(load(shown))).toBe(shown)
    const { http, redis, display, retention, routes } = load(text)
    expect(load(shown)).toMatchObject({ http, redis, display, retention, routes })
  })
})

describe('the mark of a config that anybody may read', () => {
  const markOf = (secret: string, kind = 'price') => {
    const sinks = `{ ops: { type: webhook, url: "https://h.example.com/${secret}", headers: { X-Key: ${secret} } } }`
    const sources = `{ main: { baseUrl: "https://api.example.com", token: ${secret}, budget: { unitsPerDay: 2000 } } }`
    const routes = `[{ match: { kind: ${kind} }, sinks: [ops] }]`
    return publicHashOf(load(configText({ sources, sinks, routes })))
  }

  it('tells configs apart, and nothing of a secret: many marks would confirm a guess', () => {
    const secrets = Array.from({ length: 20 }, (_, index) => `CANARYcanary${1_000 + index}`)
    expect(new Set(secrets.map((secret) => markOf(secret))).size).toBe(1)
    expect(markOf('CANARYcanary1', 'screen')).not.toBe(markOf('CANARYcanary1'))
    const patterns = [
      '(?i)folad',
      '(?i)foolad',
      '(?:price|screen)',
      'https://x.example/a?rule=1',
      'https://x.example/a?rule=2',
    ]
    const marks = patterns.map((regex) => markOf('CANARYcanary1', JSON.stringify({ regex })))
    expect(new Set(marks).size).toBe(patterns.length)
  })
})

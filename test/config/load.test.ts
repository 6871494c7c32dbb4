import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig, parseConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import type { Config } from '../../src/config/schema.ts'
import { Secret } from '../../src/lib/secret.ts'
import { configText, fixture, fixtureEnv } from './config-text.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'alert-bridge-config-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function taken(text: string, env: Record<string, string> = {}): Config {
  const loaded = parseConfig(text, { env, folder })
  if (loaded.ok) return loaded.config
  throw new Error(loaded.mistakes.map((mistake) => formatMistake('f', mistake)).join('\n'))
}

function refused(text: string, env: Record<string, string> = {}): string[] {
  const loaded = parseConfig(text, { env, folder })
  return loaded.ok ? [] : loaded.mistakes.map((mistake) => formatMistake('f', mistake))
}

function fixtureConfig(name: string): Config {
  const loaded = loadConfig(fixture(name).path, fixtureEnv)
  if (loaded.ok) return loaded.config
  throw new Error(`${name} is refused`)
}

describe('the least config', () => {
  const config = () => taken(configText())

  it('has every default filled in', () => {
    const { redis, dataDir, retention, http, display, log, operators } = config()
    expect({ redis, dataDir, retention, http, display, log, operators }).toEqual({
      redis: { mode: 'embedded', prefix: 'alert-bridge' },
      dataDir: './data',
      retention: { age: 7 * 86_400_000, count: 100_000 },
      http: { listen: { host: '127.0.0.1', port: 8080 }, hosts: [] },
      display: { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' },
      log: { level: 'info' },
      operators: [],
    })
  })

  it('polls by the plan, within the budget, with the hours of the exchange as its prior', () => {
    const { startFrom, budget, poll } = config().sources['main'] ?? {}
    expect(startFrom).toBe('now')
    expect(budget).toEqual({
      unitsPerDay: 2_000,
      requestsPerMinute: 200,
      resetsAt: '00:00',
      timeZone: 'Asia/Tehran',
    })
    expect(poll).toEqual({
      minInterval: 2_000,
      maxInterval: 900_000,
      exponent: 0.45,
      floor: 0.2,
      historyPages: 10,
      seenWindow: 30 * 86_400_000,
      sweepShare: 0.05,
      rulesShare: 0.01,
      activeHours: {
        days: ['sat', 'sun', 'mon', 'tue', 'wed'],
        from: '08:45',
        to: '12:45',
        timeZone: 'Asia/Tehran',
      },
      holidays: [],
    })
  })

  it('routes everything to the sink', () => {
    expect(config().routes).toEqual([
      { match: {}, context: [], sinks: ['ops'], mute: [], whenRuleUnknown: 'deliver' },
    ])
  })

  it('is frozen, down to the last list', () => {
    const { routes, sources } = config()
    expect(Object.isFrozen(routes[0]?.sinks)).toBe(true)
    expect(Object.isFrozen(sources['main']?.poll.activeHours.days)).toBe(true)
  })

  it('takes sections that stand there without a value as left out', () => {
    expect(fixtureConfig('good/empty-sections').http.listen.port).toBe(8080)
  })
})

describe('addresses', () => {
  it.each([
    ['127.0.0.1:8080', '127.0.0.1', 8080],
    [':8080', '0.0.0.0', 8080],
    ['[::1]:8080', '::1', 8080],
    ['localhost:0', 'localhost', 0],
  ])('listens on %s', (listen, host, port) => {
    expect(taken(configText({ http: `{ listen: "${listen}" }` })).http.listen).toEqual({ host, port })
  })

  it('drops the slash at the end of the base address and keeps its path', () => {
    const source = (url: string) => `{ main: { baseUrl: "${url}", token: t, budget: { unitsPerDay: 2000 } } }`
    const baseUrl = (url: string) => taken(configText({ sources: source(url) })).sources['main']?.baseUrl
    expect(baseUrl('https://api.example.com/')).toBe('https://api.example.com')
    expect(baseUrl('https://example.com/market//')).toBe('https://example.com/market')
  })

  it('knows sentinels, IPv6 among them', () => {
    expect(fixtureConfig('good/redis-sentinels').redis).toMatchObject({
      mode: 'sentinel',
      name: 'alerts',
      sentinels: [
        { host: '10.0.0.5', port: 26379 },
        { host: 'fd00::5', port: 26379 },
      ],
    })
  })

  it('knows a cluster and a single server, whose addresses are secrets', () => {
    const cluster = fixtureConfig('good/redis-cluster').redis
    const single = fixtureConfig('good/redis-url').redis
    expect(cluster.mode === 'cluster' && cluster.nodes.map((node) => node.reveal())).toEqual([
      'rediss://:CANARY@10.0.0.5:6379/0',
      'rediss://10.0.0.6:6379',
    ])
    expect(single.mode === 'single' && single.url.reveal()).toBe('rediss://me:CANARY@10.0.0.5:6380/1')
    expect(single.prefix).toBe('my_alerts')
  })
})

describe('values', () => {
  it('turn holidays of either calendar into Gregorian days', () => {
    expect(fixtureConfig('good/holidays').sources['main']?.poll.holidays).toEqual([
      '2026-11-25',
      '2026-11-25',
      '2025-03-20',
    ])
  })

  it('turn a starting time into an instant', () => {
    const sinceMs = Date.parse('2026-11-21T05:30:00Z')
    expect(fixtureConfig('good/start-from').sources['main']?.startFrom).toEqual({ sinceMs })
  })

  it('turn one value or many, text or number, into matchers', () => {
    const [one, two] = fixtureConfig('good/routes').routes
    expect(one?.match.ruleId).toEqual([{ op: 'equals', value: '12' }])
    expect(one?.name).toBe('one')
    expect(two?.match.ruleId).toEqual([
      { op: 'equals', value: '12' },
      { op: 'equals', value: '15' },
    ])
  })

  it('may be shared by an alias, and a mapping keeps its own over the shared', () => {
    const { one, two } = fixtureConfig('good/shared-settings').sinks
    expect([one, two].map((sink) => sink?.type === 'webhook' && [sink.url, sink.timeout])).toEqual([
      ['https://hooks.example.com/one', 3_000],
      ['https://hooks.example.com/two', 3_000],
    ])
  })

  it('stretch the default intervals to what a small budget holds: five even intervals', () => {
    const poll = fixtureConfig('good/poll-small-budget').sources['main']?.poll
    expect([poll?.minInterval, poll?.maxInterval]).toEqual([6_000, 8_640_000])
    expect(fixtureConfig('good/poll-every-long').sources['main']?.poll.maxInterval).toBe(3_600_000)
  })
})

describe('variables', () => {
  it('become the number, the boolean or the text that the field wants', () => {
    const { dataDir, http, sources, sinks, routes } = fixtureConfig('good/variables')
    expect(dataDir).toBe(`./data/\${NOT_A_VARIABLE}/$5`)
    expect(http.adminToken).toBeUndefined()
    expect(sources['main']?.baseUrl).toBe('https://api.example.com:8443')
    expect(sources['main']?.token.reveal()).toBe('1234')
    expect(sources['main']?.budget.unitsPerDay).toBe(1_234)
    expect(sinks['ops']?.allowPrivateNetworks).toBe(true)
    expect(sinks['ops']?.timeout).toBe(3_000)
    expect(routes[0]?.match.ruleId).toEqual([{ op: 'equals', value: '1234' }])
  })

  it('cannot smuggle in YAML', () => {
    const text = configText({ dataDir: `\${DIR}` })
    expect(taken(text, { DIR: './a\nlog: { level: debug }' }).dataDir).toBe('./a\nlog: { level: debug }')
    expect(taken(text, { DIR: '"' }).dataDir).toBe('"')
  })

  it('are not looked for in keys', () => {
    expect(refused(configText({ [`"\${KEY}"`]: '1' }), { KEY: 'dataDir' })).toEqual([
      expect.stringContaining(`\${KEY}: unknown key`),
    ])
  })
})

describe('a secret in a file of its own', () => {
  const text = configText({
    sources:
      '{ main: { baseUrl: "https://api.example.com", tokenFile: "token", budget: { unitsPerDay: 2000 } } }',
  })

  it('is read anew at every use, without the line break at its end', () => {
    writeFileSync(join(folder, 'token'), 'first\n')
    const token = taken(text).sources['main']?.token
    expect(token?.reveal()).toBe('first')
    writeFileSync(join(folder, 'token'), 'second\n')
    expect(token?.reveal()).toBe('second')
    expect(token?.file).toBe(join(folder, 'token'))
  })

  it('may be named by a variable, and an empty one names no file', () => {
    writeFileSync(join(folder, 'admin'), 'x')
    const http = configText({ http: `{ adminToken: "\${T:-}", adminTokenFile: "\${F:-}" }` })
    expect(taken(http, { F: 'admin' }).http.adminToken?.file).toBe(join(folder, 'admin'))
    expect(taken(http, { T: 'inline' }).http.adminToken?.reveal()).toBe('inline')
    expect(taken(http).http.adminToken).toBeUndefined()
    expect(refused(http, { F: 'admin', T: 'inline' })).toEqual([
      expect.stringContaining('adminTokenFile: adminToken is there too'),
    ])
  })

  it('works for every sink', () => {
    const { hook, slack, mail } = fixtureConfig('good/twins').sinks
    expect(hook?.type === 'webhook' && hook.secret).toBeInstanceOf(Secret)
    expect(slack?.type === 'slack' && slack.url.reveal()).toMatch(/^https:/)
    expect(mail?.type === 'email' && mail.smtp.reveal()).toMatch(/^smtps:/)
  })

  it.each(['bearerFile: /nowhere/bearer', 'basic: { username: desk, passwordFile: /nowhere/password }'])(
    'is one mistake where it cannot be read, also where one of several keys has to be there: %s',
    (auth) => {
      const sinks = `{ ops: { type: http, url: "https://hooks.example.com/a", auth: { ${auth} } } }`
      expect(refused(configText({ sinks }))).toEqual([
        expect.stringMatching(/File: the file cannot be read: it does not exist$/),
      ])
    },
  )
})

describe('a file of a certificate', () => {
  it('starts from the folder of the config when its path is relative', () => {
    const text = configText({
      sinks: `{ ops: { type: webhook, url: "https://hooks.example.com/a", tls: { ca: "./ca.pem", cert: "\${C}", key: "/etc/key.pem" } } }`,
    })
    const { ops } = taken(text, { C: 'certs/own.pem' }).sinks
    expect(ops?.type === 'webhook' && ops.tls).toEqual({
      ca: join(folder, 'ca.pem'),
      cert: join(folder, 'certs/own.pem'),
      key: '/etc/key.pem',
    })
  })

  it('is nothing that flows: a device has no end, and a pipe nobody may write to', () => {
    const ca = (path: string) =>
      `{ ops: { type: webhook, url: "https://hooks.example.com/a", tls: { ca: "${path}" } } }`
    const told = (path: string) => refused(configText({ sinks: ca(path) }))
    expect(told('/dev/null')).toEqual([expect.stringMatching(/tls\.ca: this is no plain file$/)])
    expect(told('/')).toEqual([expect.stringMatching(/tls\.ca: this is a folder, not a file$/)])
  })
})

describe('the file itself', () => {
  it('must exist, be a file, and not be huge', () => {
    const told = (path: string) => {
      const loaded = loadConfig(path, {})
      return loaded.ok ? [] : loaded.mistakes.map((mistake) => formatMistake('f', mistake))
    }
    mkdirSync(join(folder, 'dir'))
    writeFileSync(join(folder, 'huge'), '#'.repeat(1_048_577))
    expect(told(join(folder, 'missing'))).toEqual(['f: the file cannot be read: it does not exist'])
    expect(told(join(folder, 'dir'))).toEqual(['f: this is a folder, not a config file'])
    expect(told(join(folder, 'huge'))).toEqual(['f: the file is larger than 1048576 bytes'])
  })

  it('may be a pipe at the start, which a reload cannot read again', () => {
    const path = join(folder, 'pipe')
    symlinkSync('/dev/null', path)
    expect(loadConfig(path, {})).toMatchObject({ mistakes: [{ found: 'nothing' }] })
    expect(loadConfig(path, {}, { again: true })).toMatchObject({
      mistakes: [{ message: 'the file cannot be read: it is no plain file' }],
    })
  })

  it('says so when it may not be read', () => {
    const path = join(folder, 'closed')
    writeFileSync(path, configText())
    chmodSync(path, 0o000)
    const loaded = loadConfig(path, {})
    // Root reads everything.
    expect(loaded.ok).toBe(process.getuid?.() === 0)
  })

  it('may be empty, and then everything is missing', () => {
    expect(refused('')).toEqual(['f:1: found nothing: expected a mapping with sources, sinks and routes'])
  })

  it('may start with a byte order mark and end its lines like Windows does', () => {
    expect(taken(`\ufeff${configText().replaceAll('\n', '\r\n')}`).dataDir).toBe('./data')
  })

  it.each(['__proto__', 'constructor', 'toString'])('does not let the key %s reach the prototype', (key) => {
    const told = refused(`${configText()}${key}: { polluted: true }\n`)
    expect(told).toEqual([expect.stringContaining(`${key}: unknown key`)])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('cannot write control characters to the terminal', () => {
    expect(refused(configText({ '"\\e[31mred"': '1' })).join()).not.toContain('\u001b')
  })
})

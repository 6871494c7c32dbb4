import { expect } from 'vitest'
import { startApp } from '../support/app.ts'
import { api, metric } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { it } from '../support/side-by-side.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('two sources of one account spend its budget once, and each has its part of it', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }] })
  const hook = await startWebhookReceiver()
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 12 } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly name: string
    readonly state: string
    readonly budget: { readonly unitsUsed: number; readonly unitsPerDay: number } | null
  }
  const sources = async () => (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources
  await until('the budget is spent', async () =>
    (await sources()).every(({ state }) => state === 'budget_spent'),
  )
  expect(sandbox.requests).toHaveLength(12)
  for (const name of ['main', 'spare'])
    expect(
      await metric(url, `alert_bridge_budget_units_total{source="${name}",purpose="poll"}`),
    ).toBeGreaterThan(2)
  for (const { budget } of await sources()) expect(budget).toMatchObject({ unitsUsed: 12, unitsPerDay: 12 })
})

it('a source with a learned pace leaves a fixed one of its account the polls that it needs', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }] })
  const hook = await startWebhookReceiver()
  // So that nearly the whole day is ahead.
  const resetsAt = new Date(Date.now() - 5 * 60_000).toISOString().slice(11, 16)
  const budget = `{ unitsPerDay: 1000, resetsAt: "${resetsAt}", timeZone: UTC }`
  const source = (token: string, pace: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, poll: { ${pace}historyPages: 0 }, budget: ${budget} }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one', '')}, spare: ${source('two', 'every: 1m, ')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly lastPollAt: string | null
    readonly nextPollAt: string | null
  }
  const gapsMs = async () =>
    (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources.map(({ lastPollAt, nextPollAt }) =>
      lastPollAt === null || nextPollAt === null ? 0 : Date.parse(nextPollAt) - Date.parse(lastPollAt),
    )
  await until('both have polled', async () => (await gapsMs()).every((gapMs) => gapMs > 0))
  const [learnedMs = 0, fixedMs = 0] = await gapsMs()
  expect(fixedMs).toBeGreaterThan(58_000)
  expect(fixedMs).toBeLessThan(62_000)
  // The 1,440 polls of a day that the other needs are more than the units: for this one there is a twentieth of an equal part.
  expect(learnedMs).toBeGreaterThan(20 * 60_000)
})

it('a source with a fixed pace looks for late rows only with units that a learned one of its account needs not', async () => {
  const tokens = ['alone', 'fixed', 'learned'].map((value) => ({ value }))
  const sandbox = await startSandbox({ tokens, history: 1_000 })
  const hook = await startWebhookReceiver()
  // In the last quarter of an hour before the reset.
  const resetsAt = new Date(Date.now() + 16 * 60_000).toISOString().slice(11, 16)
  const source = (token: string, account: string, pace: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: ${account}, poll: { ${pace}historyPages: 0, sweepShare: 0.5 }, budget: { unitsPerDay: 20, resetsAt: "${resetsAt}", timeZone: UTC } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources:
      learned: ${source('learned', 'desk', '')}
      fixed: ${source('fixed', 'desk', 'every: 5m, ')}
      alone: ${source('alone', 'own', 'every: 5m, ')}
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  const units = (name: string, purpose: string) =>
    metric(url, `alert_bridge_budget_units_total{source="${name}",purpose="${purpose}"}`)
  for (const name of ['learned', 'fixed'])
    await until(`${name} has polled`, async () => (await units(name, 'poll')) > 0)
  await until('the one that is alone has looked', async () => (await units('alone', 'sweep')) > 0)
  expect(await units('fixed', 'sweep')).toBe(0)
})

it('a backlog of one source leaves a fixed pace of its account the polls that it needs until the reset', async () => {
  const tokens = ['fixed', 'learned'].map((value) => ({ value }))
  const sandbox = await startSandbox({ tokens, history: 4_000 })
  const hook = await startWebhookReceiver()
  // So that nearly the whole day is ahead.
  const resetsAt = new Date(Date.now() - 5 * 60_000).toISOString().slice(11, 16)
  const source = (token: string, more: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, ${more}, budget: { unitsPerDay: 60, resetsAt: "${resetsAt}", timeZone: UTC } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources:
      fixed: ${source('fixed', 'poll: { every: 30m }')}
      learned: ${source('learned', 'startFrom: beginning, poll: { historyPages: 0 }')}
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ match: { source: learned }, sinks: [hook] }]
  `)
  interface Source {
    readonly behind: boolean
    readonly lastPollAt: string | null
    readonly nextPollAt: string | null
  }
  await until('the walk has read what it may of the day', async () => {
    const learned = (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources[1]
    const restMs = Date.parse(learned?.nextPollAt ?? '') - Date.parse(learned?.lastPollAt ?? '')
    return learned?.behind === true && restMs > 60_000
  })
  // 48 of 60 units are for the fixed pace: of the other twelve the backlog takes half, with polls of its time.
  const older = sandbox.requests.filter(({ page }) => (page ?? 1) > 1).length
  expect(older).toBeGreaterThan(2)
  expect(older).toBeLessThanOrEqual(6)
})

it('paces that only together need more units than their account has are told of', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }] })
  const hook = await startWebhookReceiver()
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, poll: { every: 1m }, budget: { unitsPerDay: 2000 } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly budget: { readonly tooThin: readonly string[] } | null
  }
  const sources = async () => (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources
  await until('both have polled', async () => (await sources()).every(({ budget }) => budget !== null))
  for (const { budget } of await sources())
    expect(budget?.tooThin).toEqual([expect.stringContaining('they last for 16h 40m of each day')])
})

it('two tokens of one account that share no ledger are told of, with what to set', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }], history: 5 })
  const hook = await startWebhookReceiver()
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, poll: { every: 500ms, historyPages: 0 }, budget: { unitsPerDay: 100000 } }`
  const { url, lines } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly notes: readonly string[]
  }
  const notes = async () =>
    (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources.flatMap((each) => each.notes)
  await until('both are noted', async () => (await notes()).length === 2)
  expect((await notes())[0]).toMatch(/same alerts as source spare.*same account: NAME/)
  expect(
    lines.filter(({ level, msg }) => level === 'warn' && /same alerts as/.test(String(msg))),
  ).not.toEqual([])
})

import { expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { quarantineCommand } from '../../src/cli/quarantine.ts'
import { startApp } from '../support/app.ts'
import { api, bridgeConfig, leftToSend, metric, readiness } from '../support/bridge.ts'
import { run } from '../support/cli.ts'
import { passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { ownRedis } from '../support/redis-rig.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** Rows that are not as documented, or not where they belong: each is sent as it came, or quarantined as it came. */

const redis = useRedis()

it('rows with odd fields are sent like all others, with every field as it came', async () => {
  const row = failureRow('A row has fields of other types')
  const { sandbox, hook, start } = await rig()
  const odd: readonly object[] = [
    { payload: null },
    { channels: null, isRead: 0, ruleIds: null, url: null },
    { symbol: 12, kind: ['price', { deep: [1.5, null] }], why: { a: 1 } },
    { headline: null, firedAt: null, notifiedAt: 7 },
  ].map((fields) => ({ ...sandbox.makeRow(), ...fields }))
  const deep = sandbox.makeRow()
  const exact = sandbox.makeRow()
  const price = { ...exact, payload: { price: JSON.rawJSON('1.10'), volume: JSON.rawJSON('1e400') } }
  for (const each of [...odd, { id: 9_001 }, { ...deep, payload: nested(50) }, price]) sandbox.insert(each, 0)
  const url = await start()
  await hook.received(7)
  const sent = hook.requests.map(deliveryOf)
  await row.kept('everything: it is sent with every field as it came', () =>
    expect(sent).toEqual(expect.arrayContaining([...odd, { id: 9_001 }])),
  )
  await row.kept('also numbers that JavaScript cannot hold', () => {
    const at = idsOf(hook).indexOf(`main.${exact.id}`)
    expect(hook.requests[at]?.body).toContain('"payload":{"price":1.10,"volume":1e400}')
  })
  await row.kept('only what is nested deeper than 32 levels is replaced by a text', () => {
    // The row is the first level.
    const payload = nested(31, '[nested too deeply]')
    expect(sent).toContainEqual({ ...deep, payload })
  })
  const polls = sandbox.requests.length
  await until('two more polls', () => sandbox.requests.length > polls + 1)
  await row.twice('nothing', () => expect(new Set(idsOf(hook)).size).toBe(hook.requests.length))
  await row.heals('–', async () => expect(await readiness(url)).toBe('ok'))
  expect(await metric(url, 'alert_bridge_alerts_quarantined_total{source="main"}')).toBe(0)
})

it('rows that cannot be read are counted and shown as they came, and the rest of their page is sent', async () => {
  const row = failureRow('A row has no id that can be used')
  const { sandbox, hook, start } = await rig()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, { status: 204 })
  shown.fire(20)
  const text = { id: '12', kind: 'price', headline: 'id is text <script>' }
  // Above 2^53, where JavaScript knows only every second number.
  const large = ['9007199254740995', '9007199254740996', '9007199254740997']
  const bad = [text, null, ...large.map((id) => ({ id: JSON.rawJSON(id), kind: 'price' }))]
  for (const [index, each] of bad.entries()) sandbox.insert(each, 3 + index * 3)
  const wide = sandbox.makeRow({ headline: 'wide' })
  sandbox.insert({ ...wide, payload: Array.from({ length: 50_001 }, () => JSON.rawJSON('1.10')) }, 3)
  const url = await start()
  await until('the good ones arrive', () => hasAll(shown, log))
  const counted = (name: string) => metric(url, `alert_bridge_${name}{source="main"}`)
  await until('all six are counted', async () => (await counted('alerts_quarantined_total')) === 6)
  const list = async () => (await api<{ data: Quarantined[] }>(url, '/api/v1/quarantine?limit=500')).data
  await row.kept('the row, as it came: `quarantine list`', async () => {
    const rows = await list()
    const whole = rows.filter(({ reason }) => !reason.includes('values'))
    expect(whole.map(({ raw }) => raw).toSorted()).toEqual(bad.map((each) => JSON.stringify(each)).toSorted())
    expect(rows.every(({ reason, source }) => reason.length > 3 && source === 'main')).toBe(true)
    const { out } = await run(quarantineCommand(), 'list', '--url', url)
    expect(out).toContain(JSON.stringify(text))
  })
  await row.kept('the rest of its page is sent', () => expect(judge(shown, log)).toEqual(clean))
  const said = '6 rows of the feed could not be read and are quarantined'
  const { verdict } = await api<StatusView>(url, '/api/v1/status')
  expect(verdict.findings.map(({ text: each }) => each)).toEqual([expect.stringContaining(said)])
  expect(await (await fetch(url)).text()).toContain(said)
  const polls = sandbox.requests.length
  await until('two more polls', () => sandbox.requests.length > polls + 1)
  expect(await list()).toHaveLength(6)

  const mended = sandbox.makeRow({ headline: text.headline })
  sandbox.insert(mended, 3)
  sandbox.insert(wide, 0)
  await row.heals('the first poll', () =>
    until('they arrive', () => [mended, wide].every(({ id }) => idsOf(hook).includes(`main.${id}`))),
  )
  for (let count = 0; count < 510; count += 1) sandbox.insert({ count }, 0)
  await row.kept(
    '(500 rows or 8 MB a source, of a row 65,536 characters; what falls out is counted)',
    async () => {
      await until(
        'those beyond 500 fall out',
        async () => (await counted('quarantine_fell_out_total')) === 15,
      )
      expect(await list()).toHaveLength(500)
      const long = (id: string) => ({ id, text: 'x'.repeat(70_000) })
      // As many as the API may show on one page.
      for (let count = 0; count < 130; count += 1) sandbox.insert(long(`text ${count}`), count < 65 ? 0 : 200)
      await until(
        'as many as have room',
        async () => (await counted('alerts_quarantined_total')) === 646,
        15_000,
      )
      const rows = await list()
      expect(rows.reduce((sum, { raw }) => sum + raw.length, 0)).toBeLessThanOrEqual(8 * 1_048_576)
      expect(Math.max(...rows.map(({ raw }) => raw.length))).toBe(65_536)
      expect(rows.length).toBeLessThan(500)
      expect(await counted('quarantine_fell_out_total')).toBe(645 - rows.length)
    },
  )
  await row.twice('nothing', () => expect(new Set(idsOf(hook)).size).toBe(hook.requests.length))
})

it('rows that cannot be read and get their id deep in the feed are found by a sweep', async () => {
  const row = failureRow('A row has no id that can be used')
  const clock = passingClock()
  const { sandbox, hook, text, start } = await rig({ clock, every: '1700ms' })
  const shown = showing(sandbox)
  const log = logOf('hook', hook, { status: 204 })
  shown.fire(150)
  const mended = sandbox.makeRow({ headline: 'mended' })
  const nameless: Record<string, unknown> = { ...mended, id: null }
  sandbox.insert(nameless, 120)
  const url = await start(sweptLater(text, clock))
  await until('all others arrive', () => hasAll(shown, log), 15_000)
  await row.kept('the row, as it came: `quarantine list`', async () => {
    const { data } = await api<{ data: Quarantined[] }>(url, '/api/v1/quarantine')
    expect(data.map(({ raw }) => raw)).toEqual([JSON.stringify(nameless)])
  })
  nameless['id'] = mended.id
  const came = () => idsOf(hook).includes(`main.${mended.id}`)
  const polls = sandbox.requests.length
  await until('two more polls', () => sandbox.requests.length > polls + 1)
  expect(came()).toBe(false)
  clock.pass(100 * 60_000)
  await row.heals(
    'or deep in the feed the first sweep, that reads it with an id, and with fewer values',
    () => until('it arrives', came),
  )
  await row.twice('nothing', () => expect(new Set(idsOf(hook)).size).toBe(hook.requests.length))
})

it('a row that the feed slips in beneath its head is found by counting, or by a sweep', async () => {
  const row = failureRow('A row is slipped in beneath the head')
  const clock = passingClock()
  const { sandbox, hook, text, start } = await rig({ clock, every: '1700ms' })
  const shown = showing(sandbox)
  const log = logOf('hook', hook, { status: 204 })
  shown.fire(400)
  const url = await start(sweptLater(text, clock))
  await until('all arrive', () => hasAll(shown, log), 15_000)
  const gaps = () => metric(url, 'alert_bridge_feed_gap_total{source="main"}')
  const came = (id: number) => idsOf(hook).includes(`main.${id}`)
  const headsSince = (call: number) =>
    sandbox.requests.slice(call).filter(({ page }) => (page ?? 1) === 1).length

  const late = sandbox.makeRow({ headline: 'late' })
  let call = sandbox.requests.length
  sandbox.insert(late, 115)
  await row.kept('it is found by counting', () => until('it arrives', () => came(late.id)))
  await row.heals('the next poll', () => expect(headsSince(call)).toBeLessThanOrEqual(2))
  await row.kept('counted in `alert_bridge_feed_gap_total`', async () => expect(await gaps()).toBe(1))

  const deep = sandbox.makeRow({ headline: 'deep' })
  call = sandbox.requests.length
  sandbox.insert(deep, 360)
  await until('it is counted', async () => (await gaps()) === 2)
  await until('one more poll', () => headsSince(call) > 1)
  expect(came(deep.id)).toBe(false)
  clock.pass(100 * 60_000)
  await row.kept('or by a sweep (with units that would expire) where it lies deep', () =>
    until('it arrives', () => came(deep.id)),
  )
  await row.heals('or the next sweep', async () =>
    expect(
      await metric(url, 'alert_bridge_budget_units_total{source="main",purpose="sweep"}'),
    ).toBeGreaterThanOrEqual(3),
  )
  await row.twice('nothing', () => {
    expect(idsOf(hook)).toHaveLength(402)
    expect(new Set(idsOf(hook)).size).toBe(402)
  })
})

it('firing times that cannot be true lose no alert and are shown as they came', async () => {
  const row = failureRow('Firing times cannot be true')
  const server = await ownRedis()
  const { sandbox, hook, text, prefix } = await rig({ redis: server })
  const impossible = ['1405-08-30T09:00:00Z', '1970-01-01T00:00:00Z', '9999-01-01T00:00:00Z']
  const fire = (count: number) =>
    Array.from({ length: count }, (_, index) => sandbox.fire({ firedAt: impossible[index % 3] ?? '' }))
  const first = fire(130)
  const { url, lines } = await startApp(text, { role: 'poller' })
  const sender = await startApp(text, { role: 'sender' })
  await hook.received(130)
  // More than a page at once: the walk goes down by their places.
  const burst = fire(120)
  await hook.received(250, 15_000)
  const [example] = burst
  await row.kept('everything: such a row counts by its place in the feed', () =>
    expect(idsOf(hook).toSorted()).toEqual([...first, ...burst].map(({ id }) => `main.${id}`).toSorted()),
  )
  await row.kept('is shown with its time as it came', async () => {
    expect(hook.requests.map(deliveryOf)).toContainEqual(example)
    const story = await (await fetch(`${url}/api/v1/deliveries/main/${example?.id}`)).text()
    expect(story).toContain('1405-08-30T09:00:00Z')
  })
  await row.kept('its lag is not measured', async () => {
    expect(await metric(url, 'alert_bridge_detection_lag_seconds_count{source="main"}')).toBe(0)
    expect(
      await metric(sender.url, 'alert_bridge_delivery_lag_seconds_count{source="main",sink="hook"}'),
    ).toBe(0)
  })
  await row.kept('reported once with an example', () =>
    expect(lines.filter(({ msg }) => /such rows count by their place/.test(String(msg)))).toEqual([
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('firedAt') }),
    ]),
  )
  const losses = () => lines.filter(({ msg, new: count }) => msg === 'poll.done' && count === 100).length
  const loseRedis = async () => {
    const before = losses()
    await server.client().flushall()
    await until('the head is taken again', () => losses() > before)
    await until('all is recorded', async () => (await leftToSend(server.client(), prefix, ['hook'])) === 0)
  }
  await row.twice('unless the process that sent them still remembers it (its last 10,000)', async () => {
    await loseRedis()
    expect(hook.requests).toHaveLength(250)
  })
  await row.twice('after a loss of Redis, the 100 rows on top of the feed', async () => {
    await sender.app.stop()
    await startApp(text, { role: 'sender' })
    await loseRedis()
    await hook.received(350)
    const top = [...first, ...burst].slice(-100).map(({ id }) => `main.${id}`)
    expect(idsOf(hook).slice(250).toSorted()).toEqual(top.toSorted())
  })
  await row.heals('–', async () => expect(await readiness(url)).toBe('ok'))
})

interface Quarantined {
  readonly source: string
  readonly reason: string
  readonly raw: string
}

/** A source, a receiver, and the config of a bridge between them that is not started yet. */
async function rig(
  more: { clock?: ReturnType<typeof passingClock>; every?: string; redis?: { url: string } } = {},
) {
  const { clock, ...config } = more
  const sandbox = await startSandbox({ requestsPerMinute: 1_000_000, ...(clock ? { clock } : {}) })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const text = bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url }, ...config })
  const start = async (changed = text) => (await startApp(changed, clock ? { clock } : {})).url
  return { sandbox, hook, text, prefix, start }
}

/** With a reset in two hours: sweeps are made in the half hour before it. */
function sweptLater(text: string, clock: ReturnType<typeof passingClock>): string {
  const resetsAt = new Date(clock.now() + 2 * 3_600_000).toISOString().slice(11, 16)
  return text.replace('budget: {', `budget: { resetsAt: "${resetsAt}", timeZone: UTC,`)
}

function idsOf({ requests }: WebhookReceiver): string[] {
  return requests.map(({ headers }) => String(headers['webhook-id']))
}

function deliveryOf({ body }: { body: string }): unknown {
  return (JSON.parse(body) as { data: { delivery: unknown } }).data.delivery
}

/** Lists in lists, so deep, and this in the last one. */
function nested(depth: number, inmost: unknown = 'deep'): unknown {
  let value = inmost
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

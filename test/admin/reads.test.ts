import { expect, test } from 'vitest'
import { problemOf, rig } from './rig.ts'
import { nowMs, orphan, quarantined, status } from './views.ts'

test('the status is what the port says', async () => {
  const response = await rig().app.inject('/api/v1/status')
  expect(response.json()).toEqual(status())
})

test('deliveries are searched through in the order of firing, and followed by what changed last', async () => {
  const { app, calls } = rig()
  const page = (await app.inject('/api/v1/deliveries')).json()
  expect(page).toMatchObject({ data: [{ id: 48_213 }], looked: 1, cursor: 'older' })
  const since = new Date(nowMs).toISOString()
  await app.inject(
    `/api/v1/deliveries?state=held&sink=ops-slack&limit=7&symbol=a&symbol=b&kind=price&rule=12&id=main.4&since=${since}&cursor=x`,
  )
  await app.inject('/api/v1/deliveries?order=changed&state=dead&limit=7')
  expect(calls).toEqual([
    ['search', { limit: 50, isFull: true }],
    [
      'search',
      {
        ...{ limit: 7, state: 'held', sink: 'ops-slack', symbol: ['a', 'b'], kind: ['price'], rule: ['12'] },
        ...{ id: 'main.4', sinceMs: nowMs, cursor: 'x', isFull: true },
      },
    ],
    ['changed', { limit: 7, state: 'dead' }],
  ])
  // What changed last is not known by symbol, and has no pages.
  for (const other of ['symbol=a', 'cursor=x', 'state=held'])
    problemOf(await app.inject(`/api/v1/deliveries?order=changed&${other}`), 400)
})

test.each<[string, string | RegExp]>([
  ['/api/v1/deliveries?state=lost', 'state'],
  ['/api/v1/deliveries?limit=0', 'limit: expected a number of at least 1'],
  ['/api/v1/deliveries?limit=100000', 'limit: expected a number of at most 500'],
  ['/api/v1/deliveries?limit=many', /^limit: expected a number$/],
  ['/api/v1/deliveries?stat=dead', 'stat'],
  ['/api/v1/dead-letters?since=yesterday', 'since'],
])('%s is refused, with the name of what is wrong', async (url, words) => {
  const { app, calls } = rig()
  expect(problemOf(await app.inject(url), 400)).toMatch(words)
  expect(calls).toEqual([])
})

test("one alert's story is found by source and id", async () => {
  const response = await rig().app.inject('/api/v1/deliveries/main/48213')
  expect(response.json().data).toMatchObject({ source: 'main', id: 48_213 })
})

test.each(['main/1', 'other/48213', 'main/48213x', 'main/-1', 'main/99999999999999999', 'main/a%2Fb'])(
  'a story that nobody knows (%s) is a 404',
  async (path) => {
    expect(problemOf(await rig().app.inject(`/api/v1/deliveries/${path}`), 404)).toContain('is known')
  },
)

test('dead letters are listed by sink and time', async () => {
  const { app, calls } = rig()
  const url = `/api/v1/dead-letters?sink=ops-slack&since=${new Date(nowMs).toISOString()}`
  const page = (await app.inject(url)).json()
  expect(page.data[0]).toMatchObject({ state: 'dead', reason: 'gone' })
  expect(page).toMatchObject({ total: 1_200, cursor: 'next' })
  expect(calls).toEqual([['dead', { limit: 50, sink: 'ops-slack', sinceMs: nowMs }]])
})

test('what Redis cannot tell now is a 503 that shows nothing of the fault, and a line in the log', async () => {
  const secret = 'redis://user:hunter2@10.0.0.1'
  const { app, logged } = rig({ status: () => Promise.reject(new Error(secret)) })
  const response = await app.inject('/api/v1/status')
  expect(problemOf(response, 503)).toContain('the log says why')
  expect(response.body).not.toContain('hunter2')
  expect(JSON.parse(logged[0] ?? '')).toMatchObject({ level: 'error', path: '/api/v1/status' })
})

test.each(['/nothing', '/api/v1/nothing', '/api/v1/deliveries/main', '/api/v1/sources/other/day'])(
  '%s is a 404 problem',
  async (url) => {
    problemOf(await rig().app.inject(url), 404)
  },
)

test('every answer forbids caching, framing, sniffing and referrers', async () => {
  const { app } = rig()
  for (const url of ['/', '/metrics', '/healthz', '/readyz', '/api/v1/status', '/nothing', '/-/reload']) {
    const { headers } = await app.inject(url)
    expect(headers, url).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(headers['content-security-policy'], url).toMatch(/^default-src 'none'.*frame-ancestors 'none'/)
    expect(headers['access-control-allow-origin'], url).toBeUndefined()
  }
})

test('rows that could not be read are shown as they came, as many as are asked for', async () => {
  const { app, calls } = rig()
  expect((await app.inject('/api/v1/quarantine?limit=7')).json()).toEqual({
    ...{ data: [quarantined], total: 1, cursor: null },
  })
  await app.inject('/api/v1/quarantine?source=main')
  expect(calls).toMatchObject([
    ['quarantine', {}],
    ['quarantine', { source: 'main' }],
  ])
  problemOf(await app.inject('/api/v1/quarantine?limit=0'), 400)
})

test('every list goes on with its cursor, also where rows come and go between two pages', async () => {
  const rules = Array.from({ length: 7 }, (_, at) => ({ source: 'main', id: at * 9, name: 'Steel' }))
  const { app } = rig({ rules: async () => rules })
  const page = async (cursor: string) =>
    (await app.inject(`/api/v1/rules?limit=3&source=main${cursor}`)).json()
  const ids = ({ data }: { data: { id: number }[] }) => data.map(({ id }) => id)
  const first = await page('')
  expect([ids(first), first.total]).toEqual([[0, 9, 18], 7])
  rules.splice(1, 2)
  rules.unshift({ source: 'main', id: 1, name: 'new' })
  const second = await page(`&cursor=${first.cursor}`)
  expect(ids(second)).toEqual([27, 36, 45])
  const last = await page(`&cursor=${second.cursor}`)
  expect([ids(last), last.cursor]).toEqual([[54], null])
  expect(problemOf(await app.inject('/api/v1/rules?cursor=x'), 400)).toContain('This cursor')

  const lists = ['silences', 'rules', 'orphans', 'audit', 'quarantine', 'dead-letters', 'deliveries']
  for (const list of [...lists, 'orphans/old'])
    expect((await app.inject(`/api/v1/${list}`)).json(), list).toHaveProperty('cursor')
})

test.each([
  ['/api/v1/status?verbose=1', 'There is no parameter verbose: this address takes none.'],
  ['/api/v1/silences?stat=1', 'There is no parameter stat: there is limit, cursor.'],
  ['/api/v1/deliveries/main/48213?x=', 'There is no parameter x: this address takes none.'],
])('a parameter that nobody knows is refused: %s', async (url, sentence) => {
  expect(problemOf(await rig().app.inject(url), 400)).toBe(sentence)
})

test('what is left of names that left the config is listed, and the alerts of one', async () => {
  const { app, calls } = rig()
  expect((await app.inject('/api/v1/orphans')).json()).toMatchObject({ data: [orphan], total: 1 })
  const one = await app.inject('/api/v1/orphans/old-slack?state=waiting&limit=3')
  expect(one.json().data[0]).toMatchObject({ state: 'waiting' })
  expect(calls).toEqual([['orphans'], ['orphan', 'old-slack', { limit: 3, state: 'waiting' }]])
})

test('whether the feed had an alert, and where it would go, are asked by its id', async () => {
  const { app } = rig()
  const facts = { forgets: false, leavesOut: true, leftOut: 1_234, dropped: false }
  const seen = (await app.inject('/api/v1/sources/main/seen/47000')).json()
  expect(seen).toEqual({
    data: { source: 'main', id: 47_000, seen: true, ...facts },
  })
  const routes = (await app.inject(`/api/v1/alerts/main/48213/routes?at=2026-11-21T09:00:00Z`)).json()
  expect(routes).toMatchObject({ data: { at: '2026-11-21T09:00:00.000Z', sinks: ['trading-system'] } })
  problemOf(await app.inject('/api/v1/sources/other/seen/1'), 404)
  problemOf(await app.inject('/api/v1/alerts/main/1/routes'), 404)
  for (const path of ['/api/v1/sources/main/seen/x', '/api/v1/alerts/main/-1/routes'])
    expect(problemOf(await app.inject(path), 400)).toContain('expected the id of an alert')
})

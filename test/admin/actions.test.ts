import { rm, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { localTimes } from '../../src/cli/output/local-times.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { UserError } from '../../src/lib/errors.ts'
import { Secret } from '../../src/lib/secret.ts'
import { withFiles } from '../support/files.ts'
import { authorised, problemOf, rig, token } from './rig.ts'
import { nowMs } from './views.ts'

const iso = (ms: number) => new Date(ms).toISOString()
const hourMs = 3_600_000

const portion = { gone: 1, looked: 4, total: 9, at: iso(nowMs), cursor: null }

const moved = { there: 1, busy: 0, unreadable: 0, gone: 0, looked: 5, total: 9, at: iso(nowMs), cursor: null }

/** Every route that changes something, with a body that it takes, the order that reaches the port and the answer. */
const actions: [path: string, body: object | undefined, order: [string, ...unknown[]], answer: object][] = [
  ['/-/reload', undefined, ['reload'], { ok: true }],
  [
    '/api/v1/dead-letters/retry',
    { all: true },
    ['retry', {}],
    { retried: 3, unknown: [], ...portion, cursor: 'further' },
  ],
  [
    '/api/v1/dead-letters/retry',
    { ids: ['main.7'], sink: 'x' },
    ['retry', { ids: ['main.7'], sink: 'x' }],
    { retried: 3, unknown: [], ...portion, cursor: 'further' },
  ],
  [
    '/api/v1/dead-letters/drop',
    { since: iso(nowMs) },
    ['drop', { sinceMs: nowMs }],
    { dropped: 2, unknown: [], ...portion },
  ],
  [
    '/api/v1/dead-letters/drop',
    { sink: 'x', cursor: 'further', at: iso(nowMs), limit: 10 },
    ['drop', { sink: 'x', cursor: 'further', atMs: nowMs, limit: 10 }],
    { dropped: 2, unknown: [], ...portion },
  ],
  ['/api/v1/quarantine/retry', { all: true }, ['retry rows', {}], { retried: 1, unreadable: 2 }],
  [
    '/api/v1/quarantine/drop',
    { ids: ['main.7', 'main.raw-0f'] },
    ['drop rows', { ids: ['main.7', 'main.raw-0f'] }],
    { dropped: 4 },
  ],
  ['/api/v1/quarantine/drop', { source: 'main' }, ['drop rows', { source: 'main' }], { dropped: 4 }],
  [
    '/api/v1/replay',
    { ids: ['main.7'] },
    ['replay', { ids: ['main.7'] }],
    { queued: 2, unknown: ['main.9'], ...portion },
  ],
  [
    '/api/v1/replay',
    { since: iso(nowMs - hourMs), until: iso(nowMs), sink: 'ops-slack', limit: 0 },
    ['replay', { sinceMs: nowMs - hourMs, untilMs: nowMs, sink: 'ops-slack', limit: 0 }],
    { queued: 2, unknown: ['main.9'], ...portion },
  ],
  [
    '/api/v1/orphans/old-slack/move',
    { to: 'ops-slack', retry: true, limit: 7 },
    ['move', { name: 'old-slack', to: 'ops-slack', retry: true, limit: 7 }],
    { moved: 4, ...moved, cursor: 'further' },
  ],
  [
    '/api/v1/orphans/old-slack/drop',
    { kind: 'sink', cursor: 'further', at: iso(nowMs) },
    ['drop orphan', { name: 'old-slack', kind: 'sink', cursor: 'further', atMs: nowMs }],
    { dropped: 5, ...moved },
  ],
  [
    '/api/v1/sinks/ops-slack/pause',
    undefined,
    ['pause', 'ops-slack', { comment: '' }],
    { sink: 'ops-slack', state: 'paused', id: 'p1' },
  ],
  [
    '/api/v1/sinks/ops-slack/pause',
    { for: '1h', comment: 'night' },
    ['pause', 'ops-slack', { untilMs: nowMs + hourMs, comment: 'night' }],
    { sink: 'ops-slack', state: 'paused', id: 'p1', until: iso(nowMs + hourMs) },
  ],
  [
    '/api/v1/sinks/ops-slack/pause',
    { unlessPaused: true },
    ['pause', 'ops-slack', { comment: '', unlessPaused: true }],
    { sink: 'ops-slack', state: 'paused', id: 'p1' },
  ],
  ['/api/v1/sinks/ops-slack/probe', {}, ['probe', 'ops-slack'], { sink: 'ops-slack', state: 'probing' }],
  [
    '/api/v1/sinks/ops-slack/resume',
    {},
    ['resume', 'ops-slack', undefined],
    { sink: 'ops-slack', state: 'active' },
  ],
  [
    '/api/v1/sinks/ops-slack/resume',
    { id: 'p1' },
    ['resume', 'ops-slack', 'p1'],
    { sink: 'ops-slack', state: 'active' },
  ],
  [
    '/api/v1/sources/main/hot',
    { for: '30m' },
    ['hot', 'main', nowMs + hourMs / 2],
    { source: 'main', until: iso(nowMs + hourMs / 2) },
  ],
  [
    '/api/v1/sources/main/hot',
    { until: iso(nowMs + hourMs) },
    ['hot', 'main', nowMs + hourMs],
    { source: 'main', until: iso(nowMs + hourMs) },
  ],
  [
    '/api/v1/sources/main/hot/end',
    undefined,
    ['cool', 'main', undefined],
    { source: 'main', state: 'planned' },
  ],
  [
    '/api/v1/sources/main/hot/end',
    { until: iso(nowMs + hourMs) },
    ['cool', 'main', nowMs + hourMs],
    { source: 'main', state: 'planned' },
  ],
]
const paths = [...new Set(actions.map(([path]) => path)), '/api/v1/silences']

describe('with the token', () => {
  test.each(actions)('POST %s %j', async (path, body, order, answer) => {
    const { post, calls, logged } = rig()
    const response = await post(path, body)
    expect(response.statusCode).toBe(200)
    expect(response.json()).toEqual(answer)
    expect(calls).toEqual([order])
    expect(JSON.parse(logged.at(-1) ?? '')).toMatchObject({ msg: 'admin action', path, status: 200 })
    expect(logged.join()).not.toContain(token)
  })

  test('what was carried out is recorded for others, and what only counted, was refused or was not there is not', async () => {
    const { post, app, audited } = rig()
    await post('/api/v1/sinks/ops-slack/pause', { comment: 'night shift' })
    await post('/api/v1/sinks/other/pause')
    await post('/api/v1/dead-letters/retry', { all: true, limit: 0 })
    await post('/api/v1/dead-letters/drop', { all: true, dryRun: true })
    await post('/api/v1/dead-letters/retry', {})
    await post('/api/v1/silences/preview', { match: {} })
    await post('/api/v1/silences', { match: { symbol: ['a'] }, for: '1h', comment: 'known' })
    await post('/api/v1/replay', { ids: ['main.1'] })
    expect(
      audited.map(({ action, subject, ids, count, comment }) => [action, subject, ids, count, comment]),
    ).toEqual([
      ['send again', '', ['main.1'], 2, ''],
      ['silence', `s1 until ${iso(nowMs + hourMs)} {"symbol":["a"]}`, [], null, 'known'],
      ['pause sink', 'ops-slack', [], null, 'night shift'],
    ])
    for (const each of audited)
      expect(each).toMatchObject({ at: iso(nowMs), by: 'http.adminToken', from: '127.0.0.1' })
    expect((await app.inject('/api/v1/audit?limit=2')).json().data).toEqual(audited.slice(0, 2))
    for (let more = 0; more < 100; more += 1) await post('/api/v1/sinks/ops-slack/resume')
    expect((await app.inject('/api/v1/audit')).json().data).toHaveLength(103)
    expect((await app.inject('/api/v1/audit?limit=1000')).json().data).toHaveLength(103)
  })

  test('whatever changes something is recorded', async () => {
    const { app, post, audited } = rig()
    await post('/-/reload')
    await post('/api/v1/dead-letters/retry', { all: true })
    await post('/api/v1/dead-letters/drop', { all: true })
    await post('/api/v1/replay', { ids: ['main.1'] })
    await post('/api/v1/quarantine/retry', { all: true })
    await post('/api/v1/quarantine/drop', { all: true })
    for (const done of ['pause', 'resume', 'probe']) await post(`/api/v1/sinks/ops-slack/${done}`)
    await post('/api/v1/sources/main/hot', { for: '1h' })
    await post('/api/v1/sources/main/hot/end')
    await post('/api/v1/orphans/old-slack/move', { to: 'ops-slack' })
    await post('/api/v1/orphans/old-slack/drop')
    await post('/api/v1/silences', { match: { symbol: ['a'] }, for: '1h' })
    const headers = { authorization: `Bearer ${token}` }
    await app.inject({ method: 'DELETE', url: '/api/v1/silences/s1', headers })
    expect(audited.map(({ action }) => action).toReversed()).toEqual([
      'reload',
      'retry dead letters',
      'drop dead letters',
      'send again',
      'retry unreadable rows',
      'drop unreadable rows',
      'pause sink',
      'resume sink',
      'probe sink',
      'poll more often',
      'poll as planned',
      'move orphan',
      'drop orphan',
      'silence',
      'end silence',
    ])
  })

  test('the record says what an order was for, also where it names no alert', async () => {
    const { post, audited } = rig()
    const [since, until] = [iso(nowMs - hourMs), iso(nowMs)]
    await post('/api/v1/dead-letters/drop', { all: true })
    await post('/api/v1/dead-letters/retry', { sink: 'ops-slack', reason: 'rejected', since })
    await post('/api/v1/dead-letters/retry', { reason: 'gone' })
    await post('/api/v1/replay', { since, until, sink: 'ops-slack' })
    await post('/api/v1/replay', { since })
    await post('/api/v1/orphans/old-slack/move', { to: 'ops-slack', retry: true })
    await post('/api/v1/sinks/ops-slack/pause', { for: '1h' })
    await post('/api/v1/sources/main/hot', { for: '1h' })
    await post('/api/v1/silences', { match: { symbol: ['a'] }, for: '1h' })
    const later = iso(nowMs + hourMs)
    expect(audited.map(({ action, subject }) => [action, subject]).toReversed()).toEqual([
      ['drop dead letters', 'all'],
      ['retry dead letters', `ops-slack since ${since}, reason rejected`],
      ['retry dead letters', 'reason gone'],
      ['send again', `ops-slack since ${since} until ${until}`],
      ['send again', `since ${since}`],
      ['move orphan', 'old-slack to ops-slack, dead letters are sent again'],
      ['pause sink', `ops-slack until ${later}`],
      ['poll more often', `main until ${later}`],
      ['silence', `s1 until ${later} {"symbol":["a"]}`],
    ])
    // People read the times on a clock of their own.
    const shown = audited.map((row) => JSON.stringify(localTimes({ ...row, at: '' }, 'Asia/Tehran')))
    expect(shown.filter((text) => text.includes('Z"') || /\dZ[ ,]/.test(text))).toEqual([])
  })

  test('an address waits after twenty wrong ones, but never who has the right one: behind a proxy all have one address', async () => {
    let nowMs = 0
    const { post, calls } = rig({}, { clock: { ...systemClock, monotonicMs: () => nowMs } })
    const wrong = (address: string) =>
      post('/-/reload', {}, { authorization: 'Bearer wrong', 'x-forwarded-for': address })
    for (let tries = 0; tries < 20; tries += 1) problemOf(await wrong(`192.0.2.${tries}`), 401)
    const refused = await wrong('192.0.2.99')
    expect(problemOf(refused, 429)).toContain('wait a minute')
    expect(refused.headers['retry-after']).toBe('60')
    expect(calls).toEqual([])
    expect((await post('/-/reload')).statusCode).toBe(200)
    nowMs = 60_000
    problemOf(await wrong('192.0.2.99'), 401)
  })

  test('the token is also taken in a header of our own, since a proxy may need Authorization for a login of its own', async () => {
    const { post, calls } = rig()
    const login = { authorization: `Basic ${Buffer.from('ops:pw').toString('base64')}` }
    for (let tries = 0; tries < 20; tries += 1)
      problemOf(await post('/-/reload', {}, { 'alert-bridge-token': `${token}${tries}` }), 401)
    problemOf(await post('/-/reload', {}, { ...login, 'alert-bridge-token': 'wrong' }), 429)
    problemOf(await post('/-/reload', {}, { ...authorised, 'alert-bridge-token': '' }), 429)
    expect(calls).toEqual([])
    const done = await post('/-/reload', {}, { ...login, 'alert-bridge-token': token })
    expect(done.statusCode).toBe(200)
  })

  test('a config with mistakes is refused with all of them', async () => {
    const { post } = rig({
      reload: async () => ({ ok: false, mistakes: ['sinks.a: unknown', 'routes: empty'] }),
    })
    const response = await post('/-/reload')
    expect(problemOf(response, 422)).toContain('goes on with the old one')
    expect(response.json().mistakes).toEqual(['sinks.a: unknown', 'routes: empty'])
  })

  test.each(['/api/v1/sinks/other/pause', '/api/v1/sinks/other/resume'])('%s is a 404', async (path) => {
    expect(problemOf(await rig().post(path), 404)).toBe('There is no sink other.')
  })

  test('a source that is not there cannot run hot', async () => {
    expect(problemOf(await rig().post('/api/v1/sources/other/hot', { for: '1m' }), 404)).toContain('other')
    expect(problemOf(await rig().post('/api/v1/sources/other/hot/end'), 404)).toContain('other')
  })

  test.each<[string, unknown, string]>([
    ['/-/reload', { config: 'other.yaml' }, 'no field config'],
    ['/api/v1/sinks/ops-slack/pause', { for: '0s' }, 'for: expected a duration between 1s and 366d'],
    ['/api/v1/sinks/ops-slack/resume', { for: '10m' }, 'for'],
    ['/api/v1/sinks/ops-slack/probe', [1], 'no field 0'],
    ['/api/v1/dead-letters/retry', {}, 'say which'],
    ['/api/v1/quarantine/drop', {}, 'say which'],
    ['/api/v1/quarantine/retry', { ids: ['raw-1'] }, 'SOURCE.KEY'],
    ['/api/v1/dead-letters/drop', undefined, 'say which'],
    ['/api/v1/dead-letters/drop', { sinks: 'a' }, 'sinks'],
    ['/api/v1/dead-letters/drop', { ids: ['4711'] }, 'SOURCE.ID'],
    ['/api/v1/dead-letters/drop', { ids: [] }, 'ids'],
    ['/api/v1/dead-letters/retry', { all: true, limit: 1_001 }, 'limit'],
    ['/api/v1/dead-letters/retry', { cursor: 'x' }, 'say which'],
    ['/api/v1/replay', {}, 'expected ids'],
    ['/api/v1/replay', { until: iso(nowMs) }, 'expected ids'],
    ['/api/v1/replay', { ids: ['main.1'], since: iso(nowMs) }, 'expected ids'],
    ['/api/v1/orphans/old-slack/move', {}, 'say where'],
    ['/api/v1/orphans/old-slack/drop', { kind: 'queue' }, 'kind'],
    ['/api/v1/sources/main/hot', {}, 'expected until'],
    ['/api/v1/sources/main/hot', { for: '25h' }, 'at most 1d'],
    ['/api/v1/sources/main/hot', { until: iso(nowMs - 1) }, 'within the next 24 hours'],
    ['/api/v1/sources/main/hot', [], 'expected until'],
  ])('POST %s refuses %j', async (path, body, sentence) => {
    const { post, calls } = rig()
    expect(problemOf(await post(path, body), 400)).toContain(sentence)
    expect(calls).toEqual([])
  })
})

describe('silences', () => {
  const match = { symbol: ['فولاد'] }

  test('are added from now on, for a while or until a time', async () => {
    const { post, calls } = rig()
    const added = await post('/api/v1/silences', { match, for: '1h', comment: 'maintenance' })
    expect(added.statusCode).toBe(201)
    expect(added.json().data).toMatchObject({ id: 's1', match, endsAt: iso(nowMs + hourMs) })
    await post('/api/v1/silences', { match: {}, startsAt: iso(nowMs + 1), endsAt: iso(nowMs + 2) })
    expect(calls).toEqual([
      ['add', { match, startsAtMs: nowMs, endsAtMs: nowMs + hourMs, comment: 'maintenance' }],
      ['add', { match: {}, startsAtMs: nowMs + 1, endsAtMs: nowMs + 2, comment: '' }],
    ])
  })

  test('take what a route takes, and keep it as it was written', async () => {
    const { post, calls } = rig()
    const wide = { symbol: { glob: 'فول*' }, rule: { name: { not: ['a', { regex: 'b' }] } }, isRead: false }
    expect((await post('/api/v1/silences', { match: wide, for: '1h' })).statusCode).toBe(201)
    expect(calls[0]?.[1]).toMatchObject({ match: wide })
  })

  test('take no more patterns than are compiled soon, and any number of texts', async () => {
    const { post, calls } = rig()
    const texts = Array.from({ length: 500 }, (_, index) => `symbol-${index}`)
    const patterns = texts.map((text) => ({ regex: text }))
    const add = (symbol: unknown) => post('/api/v1/silences', { match: { symbol }, for: '1h' })
    expect(problemOf(await add(patterns), 400)).toContain('at most 50 patterns')
    expect((await add([...texts, ...patterns.slice(0, 50)])).statusCode).toBe(201)
    const large = Array.from({ length: 11 }, () => ({ regex: '[ab]{500}' }))
    expect(problemOf(await add(large), 400)).toContain('at most 5000 characters of patterns together')
    const match = { symbol: large }
    expect(problemOf(await post('/api/v1/silences/preview', { match }), 400)).toContain('at most 5000')
    const names = Array.from({ length: 10 }, (_, nth) => ({
      regex: `(${Array(61).fill(`نماد${nth}`).join('|')})`,
    }))
    expect((await add(names)).statusCode).toBe(201)
    expect(calls).toHaveLength(2)
  })

  test('that would hold back nearly everything by a list of which any is enough are refused', async () => {
    const { post, calls } = rig()
    for (const written of [{ symbol: [{ not: 'a' }, { not: 'b' }] }, { rule: { name: ['a', { not: 'b' }] } }])
      expect(problemOf(await post('/api/v1/silences', { match: written, for: '1h' }), 400)).toContain(
        '{ not: [a, b] }',
      )
    expect(calls).toEqual([])
  })

  test('that cannot be set as things stand are refused with the reason', async () => {
    const { post } = rig({
      silences: {
        list: async () => [],
        expire: async () => false,
        preview: async () => ({ matching: 0, looked: 0, sample: [] }),
        add: () => Promise.reject(new UserError('There are 500 silences already.')),
      },
    })
    expect(problemOf(await post('/api/v1/silences', { match, for: '1h' }), 409)).toContain('500 silences')
  })

  test('are ended by id', async () => {
    const { app } = rig()
    const remove = (id: string) =>
      app.inject({ method: 'DELETE', url: `/api/v1/silences/${id}`, headers: authorised })
    expect((await remove('s1')).json()).toEqual({ expired: 's1' })
    expect(problemOf(await remove('s2'), 404)).toContain('s2')
    expect(problemOf(await app.inject({ method: 'DELETE', url: '/api/v1/silences/s1' }), 401)).toContain(
      'Bearer',
    )
  })

  test.each<[object, string]>([
    [{ match }, 'when it ends'],
    [{ for: '1h' }, 'match: expected an object, and it is missing'],
    [{ match: 1, for: 5, until: 1 }, 'match: expected an object, found number; for: expected a text'],
    [{ match, for: '1h', until: 1 }, 'there is no key "until"'],
    [{ match, for: '1h', endsAt: iso(nowMs) }, 'when it ends'],
    [{ match, endsAt: iso(nowMs) }, 'lies ahead'],
    [{ match: { name: ['x'] }, for: '1h' }, 'name'],
    [{ match: { symbol: { regex: '(' } }, for: '1h' }, 'match.symbol.regex: this pattern'],
    [{ match: { rule: {} }, for: '1h' }, 'match.rule'],
    [{ match, for: 'a while' }, '10s, 15m, 6h or 3d'],
    [{ match: { symbol: '' }, for: '1h' }, 'match.symbol: expected a text that is not empty'],
  ])('%j is refused', async (body, sentence) => {
    const { post, calls } = rig()
    expect(problemOf(await post('/api/v1/silences', body), 400)).toContain(sentence)
    expect(calls).toEqual([])
  })
})

test('a body that is nested without end is a mistake of its sender, not of the bridge', async () => {
  const { app, calls, logged } = rig()
  const response = await app.inject({
    method: 'POST',
    url: '/api/v1/silences/preview',
    headers: { ...authorised, 'content-type': 'application/json' },
    payload: `{"match":{"symbol":${'{"not":'.repeat(20_000)}"x"${'}'.repeat(20_002)}`,
  })
  expect(problemOf(response, 400)).toContain('nested')
  expect(calls).toEqual([])
  expect(logged.join()).not.toContain('error')
})

describe('whoever may not change anything', () => {
  test.each(paths)('gets nothing done by POST %s without a token or with a wrong one', async (path) => {
    const { post, calls } = rig()
    for (const authorization of [
      undefined,
      'Bearer wrong',
      `Basic ${token}`,
      `Bearer ${token}x`,
      'Bearer ',
      token,
    ]) {
      const response = await post(path, {}, authorization === undefined ? {} : { authorization })
      expect(problemOf(response, 401)).toContain('http.adminToken')
      expect(response.headers['www-authenticate']).toBe('Bearer realm="alert-bridge"')
    }
    expect(calls).toEqual([])
  })

  test.each(paths)('is told which setting turns POST %s on when there is no token', async (path) => {
    for (const adminToken of [() => undefined, () => ({ reveal: () => '' })]) {
      const { post, calls } = rig({}, { adminToken })
      expect(problemOf(await post(path, {}), 403)).toContain('set http.adminToken in the config')
      expect(calls).toEqual([])
    }
  })

  test('is told what is wrong with the file of the token, where there is one', async () => {
    await withFiles({ token: '\n' }, async ({ token: path }) => {
      const { post, calls } = rig({}, { adminToken: () => Secret.fromFile(path) })
      const told = async () => problemOf(await post('/-/reload', {}), 503)
      expect(await told()).toContain('the file of http.adminTokenFile is empty')
      await rm(path)
      expect(await told()).toContain('the file of http.adminTokenFile cannot be read: it does not exist')
      expect(calls).toEqual([])
      await writeFile(path, `${token}\n`)
      expect((await post('/-/reload', {})).statusCode).toBe(200)
    })
  })

  test.each(paths)('learns nothing from GET %s', async (path) => {
    const { app, calls } = rig()
    const response = await app.inject({ url: path, headers: authorised })
    if (path === '/api/v1/silences') return expect(calls).toEqual([['silences']])
    expect(problemOf(response, 405)).toContain('POST')
    expect(response.headers['allow']).toBe('POST')
    expect(calls).toEqual([])
  })

  test.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
  ])('does not get in from another page, even with the token: %j', async (headers) => {
    const { post, calls } = rig()
    expect(problemOf(await post('/-/reload', {}, { ...authorised, ...headers }), 403)).toContain(
      'other web pages',
    )
    expect(calls).toEqual([])
  })

  test('our own page and plain clients do', async () => {
    const { post, calls } = rig({}, { hosts: () => ['bridge.example.com'] })
    for (const headers of [
      {
        'sec-fetch-site': 'same-origin',
        origin: 'http://bridge.example.com:8080',
        host: 'bridge.example.com:8080',
      },
      { 'sec-fetch-site': 'none' },
      {},
    ])
      expect((await post('/-/reload', {}, { ...authorised, ...headers })).statusCode).toBe(200)
    expect(calls).toHaveLength(3)
  })

  test('our own page does behind a proxy that names the bridge by its address, once http.hosts has the name of the proxy', async () => {
    const headers = { ...authorised, origin: 'https://Bridge.example.com', host: '127.0.0.1:8080' }
    const sites = [{ 'sec-fetch-site': 'same-origin' }, {}]
    for (const site of sites) {
      const { post, calls } = rig()
      expect(problemOf(await post('/-/reload', {}, { ...headers, ...site }), 403)).toMatch(
        /"https:\/\/Bridge\.example\.com".*http\.hosts/,
      )
      expect(calls).toEqual([])
    }
    const { post, calls } = rig({}, { hosts: () => ['bridge.example.com'] })
    for (const site of sites)
      expect((await post('/-/reload', {}, { ...headers, ...site })).statusCode).toBe(200)
    for (const foreign of [
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://bridge.example.com.evil.example' },
      { origin: 'http://127.0.0.1:9000' },
    ])
      problemOf(await post('/-/reload', {}, { ...headers, ...foreign }), 403)
    expect(calls).toHaveLength(2)
  })

  test('a token that was changed by a reload counts at once', async () => {
    let current = 'old'
    const { post } = rig({}, { adminToken: () => ({ reveal: () => current }) })
    expect((await post('/-/reload', {}, { authorization: 'Bearer old' })).statusCode).toBe(200)
    current = 'new'
    expect((await post('/-/reload', {}, { authorization: 'Bearer old' })).statusCode).toBe(401)
    expect((await post('/-/reload', {}, { authorization: 'bearer new' })).statusCode).toBe(200)
  })
})

describe('bodies', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'of type %s are refused',
    async (type) => {
      const { app, calls } = rig()
      const headers = { ...authorised, 'content-type': type }
      const response = await app.inject({
        method: 'POST',
        url: '/api/v1/replay',
        headers,
        payload: '{"ids":["a.1"]}',
      })
      expect(problemOf(response, 415)).toBe("Send JSON, and say so: 'content-type: application/json'.")
      expect(calls).toEqual([])
    },
  )

  test('that are no JSON, or too big, or reach for a prototype are refused', async () => {
    const { app, calls } = rig()
    const send = (payload: string) =>
      app.inject({
        method: 'POST',
        url: '/api/v1/replay',
        headers: { ...authorised, 'content-type': 'application/json' },
        payload,
      })
    const broken = await send('{"ids":')
    problemOf(broken, 400)
    expect(broken.json().detail).toMatch(/not valid JSON/)
    const poisoned = await send('{"__proto__":{"x":1},"ids":["a.1"]}')
    problemOf(poisoned, 400)
    expect(poisoned.json().detail).toMatch(/^The body has a key that no request has: __proto__/)
    problemOf(await send(JSON.stringify({ ids: ['a.1'], sink: 'x'.repeat(2_000_000) })), 413)
    expect(calls).toEqual([])
    // As many ids as a request may name, of the longest names that there are.
    const ids = Array.from({ length: 2_000 }, (_, index) => `${'ف'.repeat(100)}.${index + 1_000_000_000}`)
    expect((await send(JSON.stringify({ ids }))).statusCode).toBe(200)
    expect(calls).toHaveLength(1)
  })
})

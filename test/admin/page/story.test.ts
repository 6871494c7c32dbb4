import { describe, expect, test } from 'vitest'
import type { AdminDeps, AdminPorts } from '../../../src/admin/ports.ts'
import type { AuditRow } from '../../../src/admin/views/audit-view.ts'
import type { AlertStory, AttemptView } from '../../../src/admin/views/delivery-view.ts'
import { rig } from '../rig.ts'
import { ago, row, sink, source, status } from '../views.ts'

const attempt = (number: number, round: number, outcome: AttemptView['outcome'], text = ''): AttemptView => ({
  ...{ number, round, outcome, text, at: ago(30 - number), durationSeconds: 0.21 },
  ...(outcome === 'delivered' ? { reason: null, status: 204 } : { reason: 'server_error', status: 503 }),
})

const acted: AuditRow = {
  ...{
    at: ago(20),
    action: 'send again',
    subject: 'hook',
    ids: ['main.48213'],
    count: 1,
    comment: 'asked for',
  },
  ...{ by: 'http.adminToken', from: '10.0.0.7', order: null },
}

function storyWith(changes: Partial<AlertStory> = {}): AlertStory {
  const { source, id, kind, symbol, headline, url, firedAt, seenAt } = row()
  return {
    ...{
      source,
      id,
      kind,
      symbol,
      headline,
      url,
      firedAt,
      seenAt,
      why: 'قیمت بالاتر از حد',
      ruleIds: ['12'],
      page: 4,
    },
    deliveries: [
      {
        ...{
          sink: 'hook',
          routes: ['night', 'routes[2]'],
          state: 'delivered',
          reason: null,
          nextAttemptAt: null,
          requestedAt: ago(20),
        },
        attempts: [
          attempt(1, 1, 'retry', 'busy'),
          attempt(2, 1, 'dead', '<b>no</b>'),
          { ...attempt(3, 2, 'delivered'), skipped: [{ what: '<i>', why: 'budget' }] },
        ],
      },
      {
        ...{
          sink: 'desk',
          routes: null,
          state: 'dead',
          reason: 'no',
          nextAttemptAt: null,
          requestedAt: null,
        },
        attempts: [],
      },
    ],
    dropped: [{ sink: 'mail', target: 'al@example.com', at: ago(12) }],
    held: [
      {
        ...{
          route: 'night',
          sinks: ['ops-slack'],
          reason: 'muted',
          until: null,
          silence: null,
          comment: null,
        },
        text: 'held back by route night: muted until 08:00',
      },
    ],
    actions: [acted],
    ...changes,
  }
}

const none = {
  search: async () => ({ data: [], looked: 0 }),
  changed: async () => [],
  explain: async () => undefined,
  stored: async () => ({ data: [], dropped: [] }),
}

async function story(
  found: AlertStory | undefined,
  deps: Partial<AdminDeps> = {},
  ports: Partial<AdminPorts> = {},
) {
  const deliveries = { ...none, story: async () => found }
  const sinks = ['hook', 'desk', 'mail', 'ops-slack'].map((name) => sink({ name }))
  const response = await rig(
    { deliveries, status: async () => status({ sinks }), ...ports },
    deps,
  ).app.inject('/alerts/main/48213')
  const text = response.body.replace(/<(style|script)>.*?<\/\1>/gs, '')
  return { response, text, words: text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ') }
}

/** What the buttons would send. */
function actsIn(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/data-act="([^"]*)"/g)].map(([, json = '']) =>
    JSON.parse(json.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')),
  )
}

describe('the story of an alert', () => {
  test('an order by time has it on the clock of the page', async () => {
    const actions = [{ ...acted, subject: `since ${ago(20)}` }]
    expect((await story(storyWith({ actions }))).words).toContain(
      'send again since 12:02:50 ( 20s ago ) : main.48213',
    )
  })

  test('tells in order what became of it: fired, seen, held back, every attempt over every replay', async () => {
    const { response, words, text } = await story(storyWith())
    expect(response.statusCode).toBe(200)
    for (const part of [
      'قیمت بالاتر از حد',
      'fired 12:02:31 ( 39s ago )',
      'seen by the poll of 12:02:39 ( 31s ago ) on page 4, 8s later',
      'held back from ops-slack: held back by route night: muted until 08:00',
      'dropped from mail → al@example.com by an operator, 12:02:58 ( 12s ago )',
      '1. to be tried again 503 server_error',
      'hook delivered by routes night, routes[2]',
      'took 210ms busy',
      '2. given up 503 server_error',
      '&lt;b&gt;no&lt;/b&gt;',
      'sent again by an operator, the last time 20s ago 3. delivered 204',
      'without context: &lt;i&gt; (budget)',
      'desk dead nothing was sent yet',
      '20s ago send again hook: main.48213 (1 alert) “ asked for ” http.adminToken, from 10.0.0.7',
    ])
      expect(words).toContain(part)
    expect(text).toContain('<a href="https://example.com/alerts/48213" rel="noopener noreferrer"')
    for (const command of ['deliveries main.48213', 'dead-letters retry main.48213 --sink desk'])
      expect(text).toContain(`data-copy="alert-bridge ${command}"`)
  })

  test.each([
    ['✓', '#12945c', status()],
    ['!', '#d98a00', status({ sinks: [sink({ state: 'paused' })] })],
    ['✗', '#d3382e', status({ sources: [source({ state: 'stopped', reason: 'bad token' })] })],
  ])('has the verdict in title and icon, as every page: %s', async (mark, colour, now) => {
    const ports = { status: async () => now }
    for (const [found, title] of [
      [storyWith(), 'alert-bridge: فولاد'],
      [undefined, 'alert-bridge: '],
    ] as const) {
      const { text } = await story(found, {}, ports)
      expect(text).toContain(`<title>${mark} ${title}`)
      expect(/<link rel="icon" href="([^"]*)"/.exec(text)?.[1]).toContain(encodeURIComponent(colour))
    }
  })

  test('has a button for whatever can be done, each with what it will do', async () => {
    const acts = actsIn((await story(storyWith())).text)
    expect(acts.map(({ label, path, body }) => [label, path, body])).toEqual([
      ['Silence what is like it', '/api/v1/silences', undefined],
      ['Send again', '/api/v1/replay', { ids: ['main.48213'], sink: 'hook' }],
      ['Retry', '/api/v1/dead-letters/retry', { ids: ['main.48213'], sink: 'desk' }],
      ['Drop', '/api/v1/dead-letters/drop', { ids: ['main.48213'], sink: 'desk' }],
      ['Send again', '/api/v1/replay', { ids: ['main.48213'], sink: 'ops-slack' }],
    ])
    const fields = acts[0]?.['fields'] as { name: string; value: string }[]
    expect(fields.slice(0, 3).map(({ name, value }) => [name, value])).toEqual([
      ...[
        ['match.symbol', 'فولاد'],
        ['match.kind', 'price'],
        ['match.ruleId', '12'],
      ],
    ])
    expect(acts.every(({ ask }) => typeof ask === 'string' && ask.length > 10)).toBe(true)
  })

  test('says when an alert that is to be tried again is tried next', async () => {
    const [later] = storyWith().deliveries
    const deliveries = [{ ...later, state: 'delayed', nextAttemptAt: ago(-40) }]
    expect((await story(storyWith({ deliveries } as never))).words).toContain(
      'by routes night, routes[2] next try in 40s 1.',
    )
  })

  test('says of an alert that waits for its digest that it is sent later, not that it is tried again', async () => {
    const [, dead] = storyWith().deliveries
    const deliveries = [{ ...dead, state: 'delayed', reason: null, nextAttemptAt: ago(-220) }]
    const { words } = await story(storyWith({ deliveries } as never))
    expect(words).toContain('desk later next try in 3m 40s nothing was sent yet')
    // Nor of one that an operator sends again.
    const attempts = [
      { number: 1, round: 1, at: ago(900), outcome: 'delivered', durationSeconds: 1, text: '' },
    ]
    const again = deliveries.map((part) => ({ ...part, attempts, requestedAt: ago(20) }))
    expect((await story(storyWith({ deliveries: again } as never))).words).toContain('desk later next try')
  })

  test('says for how many recipients a button acts, where a sink has several', async () => {
    const to = (target: string, state: 'delivered' | 'dead') => ({
      ...{ sink: 'mail', target, state, routes: null, attempts: [], reason: null },
      ...{ nextAttemptAt: null, requestedAt: null },
    })
    const deliveries = [to('ali', 'delivered'), to('bob', 'dead'), to('eve', 'dead')]
    const acts = actsIn((await story(storyWith({ deliveries, held: [] }))).text)
    expect(acts.slice(1).map(({ label, ask }) => [label, ask])).toEqual([
      ['Send again', 'main.48213 is sent to mail (3 recipients) once more, with the same webhook-id.'],
      ...['bob', 'eve'].flatMap(() => [
        ['Retry', 'main.48213 goes back into the queue of mail (2 recipients), with fresh attempts.'],
        ['Drop', 'The dead letter of main.48213 at mail (2 recipients) is deleted for ever.'],
      ]),
    ])
  })

  test('has none for a sink that is not in the config, where the API refuses each order', async () => {
    const { text } = await story(
      storyWith(),
      {},
      { status: async () => status({ sinks: [sink({ name: 'desk' })] }) },
    )
    expect(actsIn(text).map(({ label }) => label)).toEqual(['Silence what is like it', 'Retry', 'Drop'])
    expect(text).not.toContain('data-copy="alert-bridge replay')
  })

  test('has no silence for a notice of the bridge, which no poll found either', async () => {
    const notice = storyWith({ source: 'alert-bridge', kind: 'bridge.sink_down', page: null, held: [] })
    const { text, words } = await story(notice)
    expect(actsIn(text).map(({ label }) => label)).not.toContain('Silence what is like it')
    expect(words).toContain('fired ')
    expect(words).not.toContain('by the poll of')
  })

  test('has none where everything that changes something is off', async () => {
    expect(actsIn((await story(storyWith(), { adminToken: () => undefined })).text)).toEqual([])
  })

  test('of an alert that nobody knows is a 404 that says so; of an id that is none, a 400', async () => {
    const { response, words } = await story(undefined)
    expect(response.statusCode).toBe(404)
    expect(words).toContain('No alert main.48213 is known (any more).')
    expect((await rig().app.inject('/alerts/main/x')).statusCode).toBe(400)
  })
})

test('the status page has the actions of its sinks and sources, and what operators did', async () => {
  const sinks = [sink({ dead: 3 }), sink({ name: 'b', state: 'paused' }), sink({ name: 'c', state: 'open' })]
  const { app, post } = rig({ status: async () => status({ sinks }) })
  await post('/api/v1/dead-letters/retry', { ids: ['main.1'], sink: 'ops-slack' })
  const { body } = await app.inject('/')
  expect(actsIn(body).map(({ label, path }) => [label, path])).toEqual([
    ['Poll more often', '/api/v1/sources/main/hot'],
    ['Pause', '/api/v1/sinks/trading-system/pause'],
    ['Retry dead', '/api/v1/dead-letters/retry'],
    ['Drop dead', '/api/v1/dead-letters/drop'],
    ['Resume', '/api/v1/sinks/b/resume'],
    ['Pause', '/api/v1/sinks/c/pause'],
    ['Probe now', '/api/v1/sinks/c/probe'],
    ['Retry group', '/api/v1/dead-letters/retry'],
    ['Drop group', '/api/v1/dead-letters/drop'],
    ['Add a silence', '/api/v1/silences'],
  ])
  const [hot, pause] = actsIn(body)
  expect(hot).toMatchObject({
    fields: [{ name: 'for', value: '30m' }],
    undo: { path: '/api/v1/sources/main/hot/end', body: { until: ':until' } },
  })
  // Only its own pause: another operator may have set one since.
  expect(pause).toMatchObject({
    undo: { path: '/api/v1/sinks/trading-system/resume', body: { id: ':id' } },
  })
  expect(body).toContain('grouped from the newest 1,200 of 3,000')
  expect(body).toContain('<a href="/alerts/main/4711">main.4711</a>')
  expect(body).toContain('rejected: 400 &lt;b&gt;no such channel&lt;/b&gt;')
  expect(body).toContain('<b>retry dead letters</b> <bdi dir="ltr">ops-slack: main.1</bdi> (3 alerts)')
})

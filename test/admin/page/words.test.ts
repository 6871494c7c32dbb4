import { expect, it } from 'vitest'
import { english } from '../../../src/admin/page/words/en.ts'
import { scriptWords } from '../../../src/admin/page/words/script.ts'
import type { AdminPorts } from '../../../src/admin/ports.ts'
import type { AlertStory } from '../../../src/admin/views/delivery-view.ts'
import { type RowState, rowStates } from '../../../src/admin/views/delivery-view.ts'
import type { SinkState, SourceState } from '../../../src/admin/views/status-view.ts'
import type { DecisionReason } from '../../../src/schedule/schedule.ts'
import { rig } from '../rig.ts'
import { ago, row, silence, sink, source, status } from '../views.ts'

/** A bridge of which everything can be said: every state, every kind of trouble. */
const sourceStates = Object.keys(english.sourceStates) as SourceState[]
const reasons = Object.keys(english.whyNext) as DecisionReason[]
const sinkStates = Object.keys(english.sinkStates) as SinkState[]
const rules = {
  readAt: ago(90),
  count: 9,
  unread: 0,
  silentCount: 8,
  silent: [{ id: '4', name: '', text: 'disabled' }],
}
const announced = { follows: true, ruleCount: 9, rules: [{ id: '4', name: 'فولاد' }] }
const plan = { learnedFrom: 0, firing: 'at any time', announced, hotUntil: ago(-900) }

const richStatus = () =>
  status({
    ...{ unrouted: 3, quarantined: 2, quarantineFellOut: 1, role: 'poller' },
    sources: [...sourceStates, ...sourceStates].map((state, at) =>
      source({
        ...{
          name: 'main',
          state,
          nextReason: reasons[at] ?? null,
          reason: 'the API refused the token',
          rules,
          behind: true,
        },
        ...(at === 0 ? { budget: null, plan: null, lag: null, nextPollAt: null } : {}),
        ...(at === 1 ? { plan } : {}),
        ...(at === 2
          ? { plan: { ...plan, learnedFrom: 5, announced: { ...announced, follows: false } } }
          : {}),
      }),
    ),
    sinks: sinkStates.map((state, at) =>
      sink({
        ...{ name: 'ops-slack', state, reason: 'the receiver is down', dead: 3, waiting: 4, delayed: 2 },
        ...{ oldestWaitingAt: ago(300), drainSeconds: 90, failingSince: ago(70), nextProbeAt: ago(-20) },
        pausedUntil: state === 'paused' ? ago(-60) : null,
        lastResult: {
          at: ago(3),
          kind: (['delivered', 'retry', 'dead'] as const)[at % 3] ?? 'dead',
          text: 'no such channel',
        },
        lag: at === 0 ? null : { p50: 8.4, p95: 70 },
      }),
    ),
  })

const states = Object.keys(rowStates.length > 0 ? english.rowStates : {}) as RowState[]
const alertStory = (): AlertStory => {
  const { sink: _, state: __, attempts: ___, updatedAt: ____, reason: _____, ...alert } = row()
  const attempt = {
    number: 1,
    at: ago(9),
    durationSeconds: 0.4,
    status: 503,
    reason: 'server_error',
    text: 'down',
    round: 2,
  }
  const attempts = (['delivered', 'retry', 'dead'] as const).map((outcome) => ({ ...attempt, outcome }))
  const audit = {
    at: ago(5),
    subject: 'ops-slack',
    ids: ['main.1', 'main.2', 'main.3', 'main.4', 'main.5', 'main.6'],
    count: 6,
  }
  const by = { comment: 'night', by: 'http.adminToken', from: '127.0.0.1', order: null }
  return {
    ...alert,
    ...{ why: null, ruleIds: ['4'], page: 2 },
    deliveries: states.map((state) => ({
      ...{
        sink: 'ops-slack',
        routes: ['r1', 'r2'],
        state,
        attempts,
        nextAttemptAt: ago(-40),
        requestedAt: ago(30),
        heldUpBy: {
          ...{ state: 'paused', reason: 'night', failingSince: ago(60) },
          ...{ nextProbeAt: ago(-60), heldUntil: null, pausedUntil: state === 'waiting' ? ago(-90) : null },
        },
      },
    })) as never,
    dropped: [{ sink: 'ops-slack', at: ago(5) }],
    held: [{ sinks: ['desk-email'], text: 'silence s1' }] as never,
    actions: ['pause sink', 'silence', 'reload'].map((action) => ({ ...audit, ...by, action })),
  }
}

const rich: Partial<AdminPorts> = {
  status: async () => richStatus(),
  deliveries: {
    search: async () => ({
      data: states.map((state, at) =>
        row({ id: at, state, attempts: 3, reason: 'server_error', nextAttemptAt: ago(-9) }),
      ),
      looked: 6,
      cursor: 'older',
    }),
    changed: async () => [],
    stored: async () => ({ data: [], dropped: [] }),
    explain: async () => undefined,
    story: async (_source, id) => (id === 48_213 ? alertStory() : undefined),
  },
  audit: { add: async () => {}, list: async () => [...alertStory().actions] },
  silences: {
    list: async () => [
      silence({ id: '1', comment: 'night' }),
      silence({ id: '2', match: {}, startsAt: ago(-60), problem: 'a later version wrote it' }),
      ...Array.from({ length: 10 }, (_, at) => silence({ id: `${at + 3}` })),
    ],
    add: async () => silence(),
    preview: async () => ({ matching: 1, looked: 9, sample: [] }),
    expire: async () => true,
  },
}

/** What the dialog of a button says. */
function wordsOfAct(attribute: string): string {
  const { label, ask, fields = [] } = JSON.parse(attribute.replaceAll('&quot;', '"').replaceAll('&amp;', '&'))
  return [label, ask, ...fields.map((field: { label: string }) => field.label)].join(' ')
}

/** All that a reader sees or hears but what is marked as text in another language, of another author, or a name. */
function readIn(body: string): string[] {
  const page = body.replace(/title="alert-bridge [^"]*"/g, '')
  const spoken = [...page.matchAll(/\s(?:aria-label|title|data-label|data-act)="([^"]*)"/g)].map(
    ([, text]) => text ?? '',
  )
  const said = spoken.map((text) => (text.startsWith('{') ? wordsOfAct(text) : text))
  const shown = page
    .replace(/<(style|script)>.*?<\/\1>/gs, ' ')
    .replace(/<bdi dir="ltr".*?<\/bdi>/gs, ' ')
    .replace(/<[^>]*>/g, ' ')
  return [shown, ...said].flatMap((text) => text.match(/[A-Za-z][A-Za-z0-9-]*/g) ?? [])
}

const names = new Set(
  'alert-bridge main ops-slack trading-system desk-email webhook slack price Asia Tehran quot amp lt gt b server error rejected id match p'.split(
    ' ',
  ),
)

it.each(['/', '/alerts/main/48213', '/alerts/main/1', '/?cursor=x&symbol=y'])(
  '%s leaves no English word on a Persian page',
  async (path) => {
    const { app } = rig(rich, {
      display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language: 'fa' }),
    })
    const { body } = await app.inject(path)
    expect(body).toContain('<html lang="fa" dir="rtl" ')
    expect([...new Set(readIn(body))].filter((word) => !names.has(word))).toEqual([])
    const figures = [...body.matchAll(/<(dl|table class="sinks").*?<\/(dl|table)>/gs)].map(([part]) => part)
    expect(figures.join('').replace(/<bdi.*?<\/bdi>|<[^>]*>/gs, ' ')).not.toMatch(/[0-9]/)
  },
)

it('the script has every word in Persian, with as many places to fill', () => {
  const flat = (words: object): string[] =>
    Object.values(words).flatMap((word) => (typeof word === 'string' ? [word] : flat(word)))
  const [english, persian] = [flat(scriptWords.en), flat(scriptWords.fa)]
  expect(persian.filter((word) => /[A-Za-z]/.test(word))).toEqual([])
  const places = (words: string[]) => words.map((word) => word.split('{}').length)
  expect(places(persian)).toEqual(places(english))
})

import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { deliveryRowsMax } from '../../../src/admin/page/deliveries.ts'
import type { AdminPorts } from '../../../src/admin/ports.ts'
import type { SilenceView } from '../../../src/admin/views/delivery-view.ts'
import type { BudgetStatus } from '../../../src/admin/views/status-view.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { clockAt } from '../../support/clock.ts'
import { rig } from '../rig.ts'
import { ago, letterGroups, row, silence, sink, source, sourceDay, status } from '../views.ts'

const away = () => Promise.reject(new Error('redis://user:hunter2@10.0.0.1 is away'))

async function page(ports: Partial<AdminPorts> = {}, url = '/') {
  const { app, calls } = rig(ports)
  const response = await app.inject(url)
  return { response, calls, text: response.body }
}

const withRows = (rows: ReturnType<typeof row>[]): Partial<AdminPorts> => ({
  deliveries: {
    search: async () => ({ data: rows, looked: rows.length }),
    changed: async () => rows,
    stored: away,
    explain: async () => undefined,
    story: async () => undefined,
  },
})

const withSilences = (...list: SilenceView[]): Partial<AdminPorts> => ({
  silences: {
    list: async () => list,
    add: away,
    preview: away,
    expire: async () => false,
  },
})

/** What a person reads, without tags. */
function words(text: string): string {
  return text
    .replace(/<(style|script)>.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
}

describe('the status page', () => {
  test('draws the budget day of a source by hours, what was spent over what is planned', async () => {
    const { text } = await page()
    // 8 h of 40, 4 of 200 and 190 s of the next; 8 of 42 and 5 of 190, of which the last has just begun.
    expect(text).toContain('aria-label="Today 1,286 units for 70 alerts; the plan has 1,131 by now."')
    expect(words(text)).toContain('09:00: 190 units spent, 7 alerts seen, 200 polls planned')
    expect(words(text)).toContain('13:00: 40 polls planned')
    expect(words(text)).not.toContain('sources of the account')
    // The mark of now: 12:03:10 of 24 h.
    expect(text).toContain('<rect class="mark" x="50.22%"')
    const few = {
      ...sourceDay,
      hours: sourceDay.hours.map((hour) => ({ ...hour, planned: 0.2083, units: 0 })),
    }
    const sources = { hot: away, cool: away, day: async () => few, plan: away, seen: away }
    const { text: thin } = await page({ sources })
    expect(words(thin)).toContain('13:00: 0.2 polls planned')
    expect(thin).toContain('the plan has 2.5 by now."')
    const { text: none } = await page({
      sources: {
        hot: async () => true,
        cool: async () => true,
        day: () => Promise.reject(new Error('Redis is away')),
        plan: async () => undefined,
        seen: async () => undefined,
      },
    })
    expect([none.includes('<figure class="day">'), words(none).includes('main')]).toEqual([false, true])
  })

  test('says at the budget day of a source that others of its account spend of the same units', async () => {
    const shared = (language: 'en' | 'fa') =>
      rig(
        {
          sources: {
            hot: async () => true,
            cool: async () => true,
            day: async () => ({ ...sourceDay, sharers: 2 }),
            plan: async () => undefined,
            seen: async () => undefined,
          },
        },
        { display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language }) },
      ).app.inject('/')
    expect(words((await shared('en')).body)).toContain(
      'Today 1,286 units for 70 alerts; the plan has 1,131 by now. Units are of all 2 sources of the account, alerts and plan of this one.',
    )
    expect(words((await shared('fa')).body)).toContain(
      'واحدها مصرف همهٔ ۲ منبع این حساب است؛ هشدارها و برنامه تنها از این منبع است.',
    )
  })

  test('draws the units of an hour over its polls of the plan, and beneath them its alerts', async () => {
    const { text } = await page()
    const [hour = ''] = /<g><title>09:00: 190.*?<\/g>/.exec(text) ?? []
    // Of 200 at most, on 46 px; of 7 alerts, on 16 px.
    expect(hour).toContain('<rect class="planned" x="37.50%" y="0" width="3.57%" height="46"/>')
    expect(hour).toMatch(/<rect class="spent" x="37.50%" y="(?:2.3|2.29\d+)" width="3.57%" height="43.7"\/>/)
    expect(hour).toContain('<rect class="seen" x="37.50%" y="48" width="3.57%" height="4"/>')
    // Of the units of the day: what is spent, beside the part of the day that is over.
    expect(text).toContain(
      '<rect class="fill" y="3" width="62%" height="8" rx="4"/><rect class="mark" x="50%" width="2" height="14" rx="1"/>',
    )
  })

  test('draws the queue of a sink and how long its sends took over a day, and nothing where nobody looked', async () => {
    const { text } = await page()
    expect(text).toContain('aria-label="Queue over 24 hours, 340 at most"')
    expect(text).toContain('<path d="M1 18.8h.1L2 1.0L3 19.0"/>')
    expect(text).toContain('aria-label="How long sends took over 24 hours, 1.6s at most in the mean')
    expect(text).toContain('<path d="M2 1.0h.1L3 18.8"/>')
    expect(words(text)).toContain('a send takes 20ms')
    expect(text.match(/class="curve"/g)).toHaveLength(2)
  })

  test('draws what a sink acknowledged and gave up on by hours, the one over the other', async () => {
    const { text } = await page()
    // Of 8 and 0, then 3 and 1, on 22 px.
    expect(text).toContain('<rect class="good" x="0" y="0" width="4" height="22"/>')
    expect(text).toContain(
      '<rect class="good" x="5" y="14" width="4" height="8"/><rect class="bad" x="5" y="11" width="4" height="3"/>',
    )
  })

  test('says how long a queue takes, and since when a sink fails and when it is probed next', async () => {
    const sinks = [
      sink({ waiting: 90, oldestWaitingAt: ago(300), drainSeconds: 95 }),
      sink({ name: 'down', state: 'open', failingSince: ago(4_000), nextProbeAt: ago(-42) }),
    ]
    const read = words((await page({ status: async () => status({ sinks }) })).text)
    expect(read).toContain(' 90 since 5m ago , takes 1m 35s ')
    expect(read).toContain('resting since 1h 6m ago , next probe in 42s ')
  })

  test('does not show a sink as taking alerts that puts off each of them', async () => {
    const sinks = [
      sink({ delayed: 4, putOffSince: ago(1_860) }),
      sink({ name: 'busy', waiting: 40, oldestWaitingAt: ago(300), drainSeconds: 95, heldUntil: ago(-600) }),
    ]
    const read = words((await page({ status: async () => status({ sinks }) })).text)
    expect(read).toContain(' in the last 24 hours putting off 0 ')
    expect(read).toContain(' putting off the sink asked for a pause that ends in 10m 40 since 5m ago 1 0 ')
  })

  test('groups dead letters by sink and reason, with their count, the first, the last and a sample', async () => {
    const { text } = await page()
    const read = words(text)
    expect(read).toContain('Dead letters grouped from the newest 1,200 of 3,000')
    // An order is for all of the group, also for those that were not looked at.
    const asks = (shown: string) => [...shown.matchAll(/title="([^"]* of ops-slack \(rejected\) [^"]*)"/g)]
    expect(asks(text).map(([, ask]) => ask)).toEqual([
      'At least 1,200 dead letters of ops-slack (rejected) go back into the queue, with fresh attempts; also those that came meanwhile.',
      'At least 1,200 dead letters of ops-slack (rejected) are deleted for ever; also those that came meanwhile.',
    ])
    const groups = async () => ({ ...letterGroups, total: letterGroups.looked })
    const whole = asks((await page({ deadLetters: { groups, retry: away, drop: away, list: away } })).text)
    expect(whole.map(([, ask]) => ask?.slice(0, 18))).toEqual(['1,200 dead letters', '1,200 dead letters'])
    expect(read).toContain(
      ' ops-slack rejected 1,200 1d ago 1m ago main.4711 rejected: 400 &lt;b&gt;no such channel&lt;/b&gt; ',
    )
  })

  test('says what units were spent for, and which rules may not fire, a few by name', async () => {
    const silent = Array.from({ length: 7 }, (_, at) => ({
      ...{ id: String(at), name: at === 0 ? 'قیمت <b>' : '', text: 'disabled: نماد بسته' },
    }))
    const rules = { readAt: ago(1_500), count: 31, unread: 0, silentCount: 7, silent }
    const { text } = await page({ status: async () => status({ sources: [source({ rules })] }) })
    expect(words(text)).toContain('polls 1,150 context 61 rules 20 catching up 6 api 3')
    expect(text).toContain('<rect class="context" x="92.74%" width="4.92%" height="4"/>')
    expect(words(text)).toContain(
      '7 of 31 rules may not fire, as read 25m ago : قیمت &lt;b&gt; (0): disabled',
    )
    expect(words(text)).toContain('4: disabled: نماد بسته and 2 more')
  })

  test('says of a process that only polls, or only sends, which of them it does', async () => {
    const mastheadOf = async (role: 'all' | 'poller' | 'sender') => {
      const { text } = await page({ status: async () => status({ role }) })
      return words(text.slice(text.indexOf('<h1'), text.indexOf('class="verdict')))
    }
    expect(await mastheadOf('poller')).toContain('poller only')
    expect(await mastheadOf('sender')).toContain('sender only')
    expect(await mastheadOf('all')).not.toContain('only')
  })

  test('tells at a glance that all is well, and what is polled and sent', async () => {
    const { response, text } = await page()
    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8')
    const read = words(text)
    expect(text).toContain('<title>✓ alert-bridge: Alerts are being delivered</title>')
    for (const part of [
      'up 3d 4h',
      '1405/08/30 12:03:10',
      'Asia/Tehran',
      'Redis answers, 1 source polled, 2 sinks taking deliveries.',
      '1,240 of 2,000 units',
      'resets in 11h 56m',
      '62% used 50% of the day over',
      'Last poll 12s ago',
      'Polled by web-1, process 7, running since 1405/08/27 07:56:30.',
      'Fired → seen 8.4s p95 21s Fired → acknowledged',
      'Next poll in 9s alerts are expected about now Fired → seen 8.4s p95 21s Feed complete 12s ago',
      'trading-system webhook 11 alerts acknowledged and 1 given up on in the last 24 hours taking 0 Queue over 24 hours, 340 at most 1 0 0 412 8.9s · 22.5s a send takes 20ms How long sends took over 24 hours, 1.6s at most in the mean of a quarter hour delivered 31s ago 204',
      'Delivered today 509',
    ])
      expect(read).toContain(part)
  })

  test.each([
    ['en', /acknowledged over 1h p95 over 1h, the slowest.* 3\.5s · over 1h/],
    ['fa', /از وقوع تا تحویل بیش از ۱ ساعت صدک ۹۵: بیش از ۱ ساعت، کندترین.* ۳٫۵ ثانیه ، بیش از ۱ ساعت/],
  ] as const)('a lag of which only the least is known is shown so, in %s', async (language, shown) => {
    // After a night in which a sink was down: the last bucket of the histogram ends at an hour.
    const lags = [
      { p50: 3_600, p95: 3_600 },
      { p50: 3.5, p95: 3_600 },
    ]
    const sinks = lags.map((lag, at) => sink({ name: `hook-${at}`, lag }))
    const sources = [source({ lag: { p50: 2, p95: 3_600 } })]
    const display = { timeZone: 'Asia/Tehran', calendar: 'jalali' as const, language }
    const { app } = rig({ status: async () => status({ sinks, sources }) }, { display: () => display })
    const text = words((await app.inject('/')).body)
    expect(text).toMatch(shown)
    expect(text.match(language === 'en' ? /p95 over 1h/g : /صدک ۹۵: بیش از/g)).toHaveLength(3)
  })

  test.each(['en', 'fa'] as const)('each time is on the clock of the zone, in %s', async (language) => {
    const running = 'web-2, process 9, running since 2026-11-21T08:32:10.123Z'
    const reason = `another replica polls (${running}); its lease ends at 2026-11-21T08:33:30.000Z unless it is renewed`
    const text = 'last evaluated 2026-11-18T08:00:00Z, was due 2026-11-18T09:00:00Z'
    const silent = [{ id: '0', name: 'a', trouble: 'not_evaluated' as const, text }]
    const changes = {
      sources: [
        source({
          ...{ state: 'standby' as const, reason, notes: [reason] },
          budget: { ...(source().budget as BudgetStatus), note: 'day starts anew at 2026-11-22T00:00:00Z' },
          rules: { readAt: ago(60), count: 1, unread: 0, silentCount: 1, silent },
        }),
      ],
      sinks: [sink({ state: 'paused', pausedUntil: ago(-600), reason: 'until 2026-11-21T09:00:00Z' })],
      processes: [
        { name: running, role: 'all' as const, configHash: 5, hasOurConfig: false, refusedReload: false },
      ],
    }
    const display = { timeZone: 'Asia/Tehran', calendar: 'jalali' as const, language }
    const { app } = rig({ status: async () => status(changes) }, { display: () => display })
    const { body } = await app.inject('/?since=2026-11-21T00:00:00%2B03:30&until=2026-11-21T05:30:00Z')
    const shown = words(body).replaceAll(' )', ')')
    // What the operator wrote stays.
    expect(shown.replaceAll('until 2026-11-21T09:00:00Z', '')).not.toMatch(/\dT\d\d:/)
    for (const part of [
      'since 1405/08/30 00:00:00 until 1405/08/30 09:00:00 all',
      'Sink trading-system is paused until 12:13:10 ( in 10m) (until 2026-11-21T09:00:00Z)',
      'web-2, process 9, running since 12:02:10 ( 1m ago) (all)',
      'its lease ends at 12:03:30 ( in 20s) unless it is renewed',
      'last evaluated 1405/08/27 11:30:00 ( 3d ago) , was due 1405/08/27 12:30:00 ( 2d 23h ago)',
      'day starts anew at 1405/09/01 03:30:00 ( in 15h 26m)',
    ])
      if (language === 'en') expect(shown).toContain(part)
  })

  test('names the rules whose announced evaluations polls follow', async () => {
    const rules = ['فولاد', '<b>bold</b>', '', 'd', 'e', 'f'].map((name, at) => ({ id: String(at), name }))
    const announced = { follows: true, ruleCount: 31, rules }
    const plan = { learnedFrom: 9, firing: 'at any time', announced, hotUntil: null }
    const { text } = await page({ status: async () => status({ sources: [source({ plan })] }) })
    const read = words(text)
      .replace(/ (?=[,)])/g, '')
      .replaceAll('( ', '(')
    expect(read).toContain(
      'Polls follow the evaluations that the API announces of 31 rules (فولاد, &lt;b&gt;bold&lt;/b&gt;, 2, d, e and 26 more).',
    )
    const wrong = { ...plan, announced: { ...announced, follows: false, ruleCount: 1 } }
    const other = await page({ status: async () => status({ sources: [source({ plan: wrong })] }) })
    expect(words(other.text)).toContain('which polls do not follow')
  })

  test('shows what is wrong first, and leads to it', async () => {
    const { text } = await page({
      status: async () =>
        status({ sinks: [sink({ state: 'open', reason: 'next probe in 42s', waiting: 38 })] }),
    })
    expect(text).toContain('<title>✗ alert-bridge: Ready, but something is broken</title>')
    expect(text).toContain(
      '<a href="#sink-trading-system">Sink trading-system is failing and given a rest (next probe in 42s); 38 wait</a>',
    )
    expect(text).toContain('<tr id="sink-trading-system">')
    expect(text).toContain('<a href="?sink=trading-system&amp;state=waiting#deliveries">38</a>')
  })

  test('says what it does not know: no budget, no poll, no lag, nothing sent', async () => {
    const unknown = {
      lastPollAt: null,
      nextPollAt: null,
      nextReason: null,
      budget: null,
      plan: null,
      lag: null,
    }
    const { text } = await page({
      status: async () =>
        status({
          sources: [source({ ...unknown, state: 'starting', lastCompleteWalkAt: null })],
          sinks: [
            sink({ waiting: null, active: null, delayed: null, dead: null, lag: null, lastResult: null }),
          ],
          unrouted: 1,
          quarantined: 2,
        }),
    })
    const read = words(text)
    expect(read).toContain('The budget is not known yet.')
    expect(read).toContain('Last poll – Next poll – Fired → seen – Feed complete –')
    expect(read).toContain(
      'given up on in the last 24 hours not known – Queue over 24 hours, 340 at most – – – 412 – a send takes 20ms How long sends took over 24 hours, 1.6s at most in the mean of a quarter hour nothing sent yet',
    )
    expect(read).toContain('1 alert had no route · 2 rows could not be read and are quarantined')
  })
})

describe('the latest alerts', () => {
  test('stand once each, with every sink, the reason of trouble and the next try', async () => {
    const trouble = {
      state: 'delayed',
      attempts: 4,
      reason: '429 Too Many Requests',
      nextAttemptAt: ago(-42),
    } as const
    const { text } = await page(
      withRows([
        row(),
        row({ sink: 'ops-slack', ...trouble }),
        row({ sink: 'desk-email', target: 'desk@example.com', state: 'dead', reason: 'rejected' }),
      ]),
    )
    expect(text.match(/<p class="title">/g)).toHaveLength(1)
    const read = words(text)
    expect(read).toContain('فولاد از ۵٬۲۰۰ ریال گذشت')
    expect(read).toContain(
      'main.48213 seen after 8s desk-email → desk@example.com : dead ops-slack ×4 : to retry trading-system : delivered',
    )
    expect(read).toContain('ops-slack : 429 Too Many Requests , next try in 42s')
    expect(read).toContain('desk-email → desk@example.com : rejected')
    expect(text).toContain('<a href="/alerts/main/48213">')
    expect(text).toContain('<p class="title"><a href="https://example.com/alerts/48213"')
  })

  test('that wait for the time of their digest are not shown as tried in vain', async () => {
    const digest = { sink: 'desk-email', state: 'delayed', attempts: 0, nextAttemptAt: ago(-220) } as const
    // A try that the limit of attempts does not count has its reason.
    const limited = { ...digest, sink: 'ops-slack', reason: 'rate_limited: 429' }
    const { text } = await page(withRows([row(digest), row(limited)]))
    expect(words(text)).toContain('main.48213 seen after 8s desk-email : later ops-slack : to retry ')
    expect(text).toMatch(/<li class="chip calm" title="desk-email: later">/)
    expect(text).toMatch(/<li class="chip warning" title="ops-slack: to retry">/)
    expect(words(text)).toMatch(/ Sending Later Dead .* waiting sending later delivered /)
  })

  test('from another day carry their date', async () => {
    const { text } = await page(withRows([row({ firedAt: '2026-11-19T08:00:00Z', seenAt: null })]))
    expect(words(text)).toContain('11:30:00 1405/08/28')
  })

  test('are narrowed by the address, and a filter that makes no sense is none', async () => {
    const narrowed = await page({}, '/?state=dead&sink=ops-slack')
    expect(narrowed.calls).toContainEqual([
      'search',
      { state: 'dead', sink: 'ops-slack', limit: deliveryRowsMax },
    ])
    expect(narrowed.text).toContain(
      '<a href="?sink=ops-slack&amp;state=dead#deliveries" aria-current="true">dead</a>',
    )
    // Its symbol and its kind lead to alerts like it.
    expect(narrowed.text).toContain('<a href="?symbol=%D9%81%D9%88%D9%84%D8%A7%D8%AF#deliveries">')
    expect(narrowed.text).toContain('<a href="?kind=price#deliveries">')
    // The states of the list lead on within it, and so do its pages.
    expect(narrowed.text).toContain('<a href="?sink=ops-slack&amp;state=waiting#deliveries">waiting</a>')
    const search = async () => ({ data: [row()], looked: 1, cursor: 'x-1' })
    const { text } = await page(
      { deliveries: { ...withRows([]).deliveries, search } as never },
      '/?sink=hook',
    )
    expect(text).toContain('<a href="?sink=hook&amp;cursor=x-1#deliveries">older</a>')
    const senseless = await page({}, '/?state=%3Cb%3E&state=x&sink=')
    expect(senseless.calls).toContainEqual(['search', { limit: deliveryRowsMax }])
    expect(words((await page(withRows([]), '/?state=dead')).text)).toContain('None like that.')
    expect(words((await page(withRows([]))).text)).toContain('No alert was seen yet.')
  })

  test('are searched for what is left of several texts, where a browser without the script sends empty ones', async () => {
    const { calls } = await page({}, '/?symbol=a&symbol=+b+&symbol=&kind=&kind=&state=')
    expect(calls).toContainEqual(['search', { symbol: ['a', 'b'], limit: deliveryRowsMax }])
  })

  test('are narrowed down, on a Persian page, by what has a Persian name', async () => {
    const fa = () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language: 'fa' }) as const
    const at = '2026-11-21T05:15:00Z'
    const asked = `symbol=1&kind=2&rule=3&source=4&id=5&since=${at}&until=${at}`
    const { body } = await rig({}, { display: fa }).app.inject(`/?${asked}`)
    const [, filters = ''] = /<nav class="filters"[^>]*>(.*?)<\/nav>/s.exec(body) ?? []
    expect(words(filters)).toMatch(/نماد +1 +نوع +2 +قاعده +3 +منبع +4 +شناسه +5 /)
    expect(words(filters)).not.toMatch(/[a-z]/i)
  })

  test('that a search has not found yet are not said to be none, where it looked at a part of them only', async () => {
    const search = async () => ({ data: [], looked: 20_000, cursor: 'older' })
    const deliveries = { ...withRows([]).deliveries, search } as AdminPorts['deliveries']
    const { text } = await page({ deliveries }, '/?symbol=rare')
    expect(words(text)).toContain('None like that among 20,000 alerts; there are older ones. older')
    const fa = () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language: 'fa' }) as const
    const { body } = await rig({ deliveries }, { display: fa }).app.inject('/?symbol=rare')
    expect(words(body)).toContain('میان ۲۰٬۰۰۰ هشدار چنین چیزی نیست؛ هشدارهای قدیمی‌تری هم هست.')
  })

  test('are searched by a form whose times are of the zone of the page', async () => {
    const fields = '/?symbol=+فولاد+&kind=&id=4711&sink=&since=2026-11-21T08:45&until=2026-11-21T09:00:30'
    const { calls, text } = await page({}, encodeURI(fields))
    const between = {
      sinceMs: Date.parse('2026-11-21T05:15:00Z'),
      untilMs: Date.parse('2026-11-21T05:30:30Z'),
    }
    expect(calls).toContainEqual([
      'search',
      { symbol: ['فولاد'], id: '4711', ...between, limit: deliveryRowsMax },
    ])
    expect(text).toContain('<details class="search" open>')
    for (const value of ['فولاد', '4711', '2026-11-21T08:45', '2026-11-21T09:00:30'])
      expect(text).toMatch(new RegExp(`<input [^>]*value="${value}"`))
    expect((await page({}, '/?state=dead')).text).toContain('<option data-key="dead" value="dead" selected>')
    expect((await page({}, '/')).text).toContain('<details class="search">')
  })

  test.each(['2026-11-21T25:00', '2026-13-01T10:00', '0099-01-01T00:00', '٢٠٢٦-11-21T08:45'])(
    'are all of them where the address has a time that no clock shows: %s',
    async (time) => {
      const { response, calls } = await page({}, encodeURI(`/?since=${time}&state=dead`))
      expect(response.statusCode).toBe(200)
      expect(calls).toContainEqual(['search', { state: 'dead', limit: deliveryRowsMax }])
    },
  )
})

describe('when something is away', () => {
  test('the verdict is sent before the lists are read, however long they take', async () => {
    const lists = Promise.withResolvers<{ data: ReturnType<typeof row>[]; looked: number }>()
    const { deliveries } = withRows([])
    const { app } = rig({ deliveries: { ...deliveries, search: () => lists.promise } as never })
    const response = await app.inject({ url: '/', payloadAsStream: true })
    const texts: string[] = []
    for await (const text of response.stream()) {
      texts.push(String(text))
      lists.resolve({ data: [row()], looked: 1 })
    }
    expect(texts[0]).toContain('<p class="headline">Alerts are being delivered</p>')
    expect(texts[0]).not.toContain('<h2')
    expect(texts.join('')).toContain('<a href="/alerts/main/48213">')
  })

  test('without deliveries the rest still stands', async () => {
    const { response, text } = await page({
      deliveries: { search: away, changed: away, stored: away, explain: away, story: away },
    })
    expect(response.statusCode).toBe(200)
    expect(words(text)).toContain('The deliveries cannot be read now.')
    expect(text).not.toContain('hunter2')
  })

  test('without a status the page says so, with 503 and without the words of the fault', async () => {
    const { response, text } = await page({ status: away })
    expect(response.statusCode).toBe(503)
    expect(words(text)).toContain('The status cannot be read now')
    expect(text).not.toContain('hunter2')
  })

  test('a port that hangs costs the page its part, not its answer', async () => {
    const { app } = rig({ status: () => new Promise(() => {}) }, { clock: clockAt(Date.now) })
    const response = await app.inject('/')
    expect(response.statusCode).toBe(503)
    expect(words(response.body)).toContain('within the time limit')
  })

  test('a Redis that answers nothing does not make the page take longer than its own script waits', async () => {
    const slow = async () => {
      await setTimeout(2_000)
      return status()
    }
    const hang = () => new Promise<never>(() => {})
    const { deliveries } = withRows([])
    const ports = { status: slow, deliveries: { ...deliveries, search: hang } as never }
    const { app } = rig(ports, { clock: systemClock })
    const fromMs = performance.now()
    const { body } = await app.inject('/')
    expect(performance.now() - fromMs).toBeLessThan(4_000)
    expect(words(body)).toContain('The deliveries cannot be read now.')
  })
})

describe('text from outside', () => {
  const canary = `"'><img src=x onerror=alert(1)></title></script><script>alert(2)</script>\u202E{{7*7}}`
  const escaped = '&lt;img src=x onerror=alert(1)&gt;'

  test('is shown and never run, wherever it stands', async () => {
    const { text } = await page({
      ...withRows([
        row({
          headline: canary,
          symbol: canary,
          kind: canary,
          url: `https://example.com/${canary}`,
          reason: canary,
          sink: canary,
          target: canary,
          source: canary,
          firedAt: canary,
        }),
      ]),
      ...withSilences(
        silence({
          match: { [canary]: canary, rule: { name: { glob: canary } } },
          comment: canary,
          problem: canary,
        }),
      ),
      status: async () =>
        status({
          sources: [source({ name: canary, reason: canary, state: 'stopped' })],
          sinks: [
            sink({
              name: canary,
              type: canary,
              reason: canary,
              lastResult: { at: ago(1), kind: 'dead', text: canary },
            }),
          ],
          redis: { ok: false, error: canary },
        }),
    })
    expect(text.split(escaped).length).toBeGreaterThan(12)
    expect(text).not.toMatch(/<img/i)
    expect(text.match(/<script/g)).toHaveLength(1)
    expect(text.match(/<\/title>/g)).toHaveLength(1)
    const tags = text.replace(/"[^"]*"/g, '""').match(/<[^>]*>/g) ?? []
    expect(tags.filter((tag) => /\son\w+\s*=/i.test(tag))).toEqual([])
    expect(text).not.toContain('\u202E')
  })

  test('is no link when its address is a script', async () => {
    const { text } = await page(withRows([row({ url: 'javascript:alert(1)' })]))
    expect(text).not.toContain('javascript:')
  })
})

describe('the silences', () => {
  const sectionOf = (text: string) => /<section aria-labelledby="silences">.*?<\/section>/s.exec(text)?.[0]

  test('are shown with what they match, their comment and their end, each with a button that ends it', async () => {
    const match = { symbol: ['فولاد', 'خودرو'], isRead: false, rule: { name: { glob: 'c*' } } }
    const { text } = await page(
      withSilences(
        silence({ match, comment: 'they migrate' }),
        silence({ id: '2b', match: {}, startsAt: ago(-60), problem: 'a later version wrote it' }),
      ),
    )
    const shown = words(sectionOf(text) ?? '').replaceAll(' .', '.')
    expect(shown).toContain(
      'symbol فولاد, خودرو · isRead false · rule.name {&quot;glob&quot;:&quot;c*&quot;} “ they migrate ” 1a · ends in 1h',
    )
    expect(shown).toContain('every alert 2b · starts in 1m , ends in 1h a later version wrote it')
    const [first] = [...text.matchAll(/data-act="([^"]*)"/g)]
      .map(([, act = '']) => JSON.parse(act.replaceAll('&quot;', '"')))
      .filter(({ label }) => label === 'End now')
    expect(first).toMatchObject({ method: 'DELETE', path: '/api/v1/silences/1a' })
    expect(first.undo).toEqual({
      method: 'POST',
      path: '/api/v1/silences',
      body: { match, startsAt: ago(60), endsAt: ago(-3_600), comment: 'they migrate' },
    })
  })

  test('beyond ten are counted, with a link to all', async () => {
    const list = Array.from({ length: 12 }, (_, at) => silence({ id: `s${at}` }))
    const { text } = await page(withSilences(...list))
    expect(text).toContain('<a href="/api/v1/silences"> and 2 more</a>')
    expect([text.includes('silences/s9&quot;'), text.includes('silences/s10&quot;')]).toEqual([true, false])
  })

  test('of which there are none take one line, and none where nobody may add one', async () => {
    expect(words(sectionOf((await page()).text) ?? '')).toBe(' Silences none Add a silence ')
    const { app } = rig({}, { adminToken: () => undefined })
    expect(sectionOf((await app.inject('/')).body)).toBeUndefined()
    const { app: readOnly } = rig(withSilences(silence()), { adminToken: () => undefined })
    expect(words(sectionOf((await readOnly.inject('/')).body) ?? '')).toBe(
      ' Silences symbol فولاد 1a · ends in 1h ',
    )
  })

  test('that cannot be read leave the page without them, which asks again', async () => {
    const { text, response } = await page({
      silences: { list: away, add: away, preview: away, expire: async () => false },
    })
    expect([response.statusCode, sectionOf(text), text.includes('data-unread')]).toEqual([
      200,
      undefined,
      true,
    ])
  })
})

describe('the policy of the page', () => {
  test('lets in its own style and script by digest, and nothing else', async () => {
    const { response, text } = await page()
    const policy = String(response.headers['content-security-policy'])
    for (const [tag, directive] of [
      ['style', 'style-src'],
      ['script', 'script-src'],
    ]) {
      const content = new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(text)?.[1] ?? ''
      const digest = createHash('sha256').update(content).digest('base64')
      expect(policy).toContain(`${directive} 'sha256-${digest}'`)
    }
    expect(policy).toMatch(/^default-src 'none'; /)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
  })

  test('has nothing to forbid: no style or script in attributes, no asset from elsewhere', async () => {
    const { text } = await page()
    expect(text).not.toMatch(/\s(style|on[a-z]+)="/)
    expect(text).not.toMatch(/<(link|img|script)[^>]*(src|href)="https?:/)
  })
})

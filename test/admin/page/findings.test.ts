import { expect, it } from 'vitest'
import { findingCodes } from '../../../src/admin/finding.ts'
import type { StatusFacts } from '../../../src/admin/views/status-view.ts'
import type { PollerFault } from '../../../src/poller/settings.ts'
import { rig } from '../rig.ts'
import { ago, orphan, otherPoller, sink, source, status } from '../views.ts'

const faultOf = (why: PollerFault) => ({ sources: [source({ fault: { why, reason: 'the reason' } })] })
const evil = '\u202eno <b>such</b> channel'

/** One for each thing that can be found, and what the Persian page says of it; `[…]` is text of others, as it came. */
const cases: [string, Partial<StatusFacts>, string][] = [
  ['draining', { draining: true }, 'پل در حال خاموش شدن است'],
  [
    'redis_away',
    { redis: { ok: false, error: 'ECONNREFUSED' } },
    'ردیس پاسخ نمی‌دهد ([ECONNREFUSED])؛ پرس‌وجو و ارسال در انتظار آن است',
  ],
  [
    'redis_unsafe',
    { redis: { ok: true, trouble: 'maxmemory-policy is allkeys-lru' } },
    'ردیس درست تنظیم نشده است: [maxmemory-policy is allkeys-lru]',
  ],
  [
    'redis_uncounted',
    { orphans: null },
    'ردیس کند است یا پاسخ نمی‌دهد: بخشی از آنچه در انتظار است یا تحویل نشده شمرده نشد',
  ],
  ['rows_quarantined', { quarantined: 3 }, '۳ ردیف خوانده نشد و کنار گذاشته شد ([alert-bridge quarantine])'],
  [
    'reload_refused',
    { refusedReload: { at: ago(60), mistakes: ['config:3: a', 'config:4: b', 'config:5: c'] } },
    'پیکربندی تازه پذیرفته نشد و پیکربندی پیشین همچنان برقرار است: [config:3: a] و ۲ اشکال دیگر',
  ],
  [
    'configs_differ',
    { processes: [otherPoller] },
    'جز پیکربندی این پردازه، پیکربندی دیگری هم در کار است: [web-2, process 9 (poller)]',
  ],
  [
    'orphaned',
    { orphans: [orphan] },
    'مقصد [old-slack] در پیکربندی نیست، ولی ۲۶۰ هشدار در صف و ۳ هشدار تحویل‌نشدهٔ آن مانده است ([alert-bridge orphans])',
  ],
  [
    'orphaned',
    { orphans: [{ kind: 'source', name: 'old', lastPollAt: null, rows: 9, held: 2, quarantined: 0 }] },
    'منبع [old] در پیکربندی نیست، ولی داده‌های آن مانده است: ۹ ردیف، ۲ هشدار نگه‌داشته ([alert-bridge orphans])',
  ],
  ['source_starting', faultOf('starting'), 'هنوز از منبع [main] پرس‌وجو نشده است'],
  [
    'source_crashed',
    faultOf('crashed'),
    'پرس‌وجو از منبع [main] با خطا قطع شد و از سر گرفته شد: [the reason]',
  ],
  ['source_stuck', faultOf('stuck'), 'پرس‌وجو از منبع [main] گیر کرده است: [the reason]'],
  ['source_redis_away', faultOf('redis_down'), 'پرس‌وجو از منبع [main] در انتظار ردیس است: [the reason]'],
  ['source_failing', faultOf('failing'), 'هیچ پرس‌وجویی از منبع [main] موفق نیست: [the reason]'],
  [
    'source_overdue',
    { sources: [source({ here: false, overdueSeconds: 80 })] },
    'از منبع [main] باید ۱ دقیقه و ۲۰ ثانیه پیش پرس‌وجو می‌شد',
  ],
  [
    'source_stopped',
    { sources: [source({ state: 'stopped', reason: 'توکن پذیرفته نشد' })] },
    'پرس‌وجو از منبع [main] متوقف شده است: [توکن پذیرفته نشد]',
  ],
  [
    'source_budget_spent',
    { sources: [source({ state: 'budget_spent' })] },
    'بودجهٔ امروز منبع [main] تمام شده است؛ پرس‌وجو در انتظار شروع دوبارهٔ بودجه است',
  ],
  [
    'source_retrying',
    { sources: [source({ state: 'retrying' })] },
    'اکنون نمی‌توان از منبع [main] پرس‌وجو کرد؛ دوباره تلاش می‌شود',
  ],
  [
    'source_catching_up',
    { sources: [source({ state: 'catching_up' })] },
    'منبع [main] عقب مانده و در حال جبران است',
  ],
  [
    'source_catching_up',
    { sources: [source({ state: 'catching_up', reason: '502' })] },
    'منبع [main] عقب مانده است و یکی از صفحه‌های بعدی خوانده نمی‌شود: [502]',
  ],
  [
    'source_queues_full',
    { sources: [source({ state: 'queues_full', reason: 'full' })] },
    'صف‌ها پر است و پرس‌وجو از منبع [main] صبر می‌کند: [full]',
  ],
  [
    'source_unpolled',
    { role: 'sender', sources: [source({ here: false, state: 'starting', nextPollAt: null })] },
    'تا جایی که ردیس نشان می‌دهد، هنوز هیچ پردازه‌ای از منبع [main] پرس‌وجو نکرده است',
  ],
  [
    'source_rules_silent',
    { sources: [source({ rules: { readAt: ago(90), count: 9, unread: 0, silentCount: 4, silent: [] } })] },
    'شاید ۴ قاعدهٔ منبع [main] هشدار ندهد',
  ],
  [
    'source_budget_thin',
    {
      sources: [
        source({
          budget: {
            ...{ unitsUsed: 0, spentFor: [], unitsPerDay: 5, note: null, tooThin: ['5 units a day'] },
            ...{ startedAt: ago(3_600), resetsAt: ago(-82_800) },
          },
        }),
      ],
    },
    'واحدهای منبع [main] کافی نیست: [5 units a day]',
  ],
  [
    'sink_refuses',
    {
      sinks: [
        sink({ dead: 1_200, refusedInARow: 1_200, lastResult: { at: ago(5), kind: 'dead', text: evil } }),
      ],
    },
    'مقصد [trading-system] هیچ هشداری را نمی‌پذیرد: ۱٬۲۰۰ هشدار آخر رها شد ([no &lt;b&gt;such&lt;/b&gt; channel])',
  ],
  [
    'sink_refuses',
    { sinks: [sink({ dead: 3, refusedInARow: 3, lastResult: null })] },
    'مقصد [trading-system] هیچ هشداری را نمی‌پذیرد: ۳ هشدار آخر رها شد (دلیل دانسته نیست)',
  ],
  [
    'sink_slow',
    { sinks: [sink({ waiting: 8_929, oldestWaitingAt: ago(300), drainSeconds: 8_929 })] },
    'مقصد [trading-system] کند است: ۸٬۹۲۹ هشدار در انتظار است، قدیمی‌ترینِ آن‌ها از ۵ دقیقه پیش؛ با این سرعت ۲ ساعت و ۲۸ دقیقه دیگر طول می‌کشد',
  ],
  [
    'sink_slow',
    { sinks: [sink({ waiting: 3, oldestWaitingAt: ago(180) })] },
    'مقصد [trading-system] کند است: ۳ هشدار در انتظار است، قدیمی‌ترینِ آن‌ها از ۳ دقیقه پیش؛ در این مدت چیزی فرستاده نشده است',
  ],
  [
    'sink_slow',
    { sinks: [sink({ waiting: 3, oldestWaitingAt: ago(180), heldUntil: ago(-600) })] },
    'مقصد [trading-system] کند است: ۳ هشدار در انتظار است، قدیمی‌ترینِ آن‌ها از ۳ دقیقه پیش؛ این مقصد درنگ خواسته است؛ پایان: ۱۰ دقیقه دیگر',
  ],
  [
    'sink_puts_off',
    { sinks: [sink({ delayed: 8, putOffSince: ago(2_700) })] },
    'مقصد [trading-system] همه چیز را به بعد می‌اندازد: ۸ هشدار در انتظار تلاش بعدی است، یکی از آن‌ها از ۴۵ دقیقه پیش؛ در این مدت چیزی تأیید نشده است',
  ],
  [
    'sink_failing',
    { sinks: [sink({ state: 'open', reason: '503 بعداً بیایید، اکنون بسته است', waiting: 8, delayed: 2 })] },
    'ارسال به مقصد [trading-system] ناموفق است و فعلاً انجام نمی‌شود ([503 بعداً بیایید، اکنون بسته است])؛ ۱۰ هشدار در انتظار است',
  ],
  [
    'sink_stuck',
    { sinks: [sink({ state: 'stuck', reason: '2 wait' })] },
    'مقصد [trading-system] گیر کرده است: [2 wait]',
  ],
  [
    'sink_paused',
    { sinks: [sink({ state: 'paused', pausedUntil: ago(-600), reason: 'night' })] },
    'مقصد [trading-system] متوقف است، پایان آن ۱۰ دقیقه دیگر ([night])',
  ],
  ['sink_dead_letters', { sinks: [sink({ dead: 12 })] }, 'مقصد [trading-system] ۱۲ هشدار تحویل‌نشده دارد'],
]

it('every code of a finding has a case here', () => {
  expect(new Set(cases.map(([code]) => code))).toEqual(new Set(findingCodes))
})

it.each(cases)('%s is said in the words of a Persian page', async (code, changes, said) => {
  const view = status(changes)
  expect(view.verdict.findings).toMatchObject([{ code }])
  const body = await panelIn('fa', changes)
  const [item = ''] = [...body.matchAll(/<li class="\w+"><a href="[^"]*">(.*?)<\/a><\/li>/gs)].map(
    ([, inner]) => inner,
  )
  const seen = item
    .replace(/<bdi dir="(ltr|rtl)"[^>]*>(.*?)<\/bdi>/gs, '[$2]')
    .replace(/<time [^>]*>(.*?)<\/time>/gs, '$1')
  expect(seen).toBe(said)
  const english = await panelIn('en', changes)
  expect(english.replace(/<bdi><time.*?<\/bdi>/gs, 'THEN')).toContain(
    (view.verdict.findings[0]?.text ?? '')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, 'THEN')
      .replace('\u202e', '')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;'),
  )
})

it('what is not there is said in Persian too, as Persian', async () => {
  const { app } = rig(
    {},
    { display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language: 'fa' }) },
  )
  const { body } = await app.inject('/alerts/main/1')
  expect(body).toMatch(/<li class="warning"><a [^>]*>هشدار main\.1 \(دیگر\) شناخته نیست\.<\/a>/)
})

async function panelIn(language: 'en' | 'fa', changes: Partial<StatusFacts>): Promise<string> {
  const { app } = rig(
    { status: async () => status(changes) },
    { display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language }) },
  )
  return /<div class="verdict.*?<\/ul>/s.exec((await app.inject('/')).body)?.[0] ?? ''
}

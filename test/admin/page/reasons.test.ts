import { expect, it } from 'vitest'
import type { AdminPorts } from '../../../src/admin/ports.ts'
import type { WithheldCause } from '../../../src/admin/views/delivery-view.ts'
import { rig } from '../rig.ts'
import { ago, row, sink, source, status } from '../views.ts'

/** Why an alert was held back or not taken, on a page in another language: the bridge's reasons in that language, other texts as they came. */
const silenced: WithheldCause = {
  route: 'r1',
  reason: 'silenced',
  until: ago(-60),
  silence: 's1',
  comment: 'move',
}
const none = { until: null, silence: null, comment: null }
const causes: readonly (readonly [WithheldCause, RegExp])[] = [
  [
    silenced,
    /بی‌صدایی <bdi dir="ltr">s1<\/bdi> در مسیر <bdi dir="ltr">r1<\/bdi>، پایان آن <.*?\) «<bdi dir="ltr">move<\/bdi>»<\/p>/,
  ],
  [
    { ...silenced, until: null },
    /<bdi dir="ltr">r1<\/bdi>، که زودتر پایان یافت «<bdi dir="ltr">move<\/bdi>»<\/p>/,
  ],
  [{ ...none, route: 'r2', reason: 'muted' }, /زمان بی‌صدای مسیر <bdi dir="ltr">r2<\/bdi><\/p>/],
  [{ ...none, route: 'r3', reason: 'throttled' }, /محدودیت ارسال مسیر <bdi dir="ltr">r3<\/bdi><\/p>/],
  [{ ...none, route: null, reason: 'unrouted' }, /<bdi>بی‌مقصد<\/bdi>: هیچ مسیری مقصدی برای آن نداشت<\/p>/],
]
const failures = [
  ['server_error: 503 moved', 'خطای سرور گیرنده: <bdi dir="ltr">503 moved</bdi>'],
  ['expired', 'مهلت ارسال گذشت'],
  ['constructor: job stalled', '<bdi dir="ltr">constructor: job stalled</bdi>'],
  ['an earlier version said so', '<bdi dir="ltr">an earlier version said so</bdi>'],
] as const

const english = 'held back as ever'
const ports: Partial<AdminPorts> = {
  status: async () =>
    status({
      sources: [source()],
      sinks: [
        sink({ name: 'hook', state: 'open', reason: 'connect: ECONNREFUSED' }),
        sink({ name: 'desk', state: 'paused', reason: 'timeout' }),
        sink({ name: 'chat', state: 'paused', reason: 'انتقال Slack تا فردا' }),
      ],
    }),
  deliveries: {
    search: async () => ({
      data: [
        ...causes.map(([withheld], id) => row({ id, state: 'held', reason: english, withheld })),
        ...failures.map(([reason], id) => row({ id: id + 9, state: 'dead', reason })),
      ],
      looked: 8,
    }),
    changed: async () => [],
    stored: async () => ({ data: [], dropped: [] }),
    explain: async () => undefined,
    story: async () => undefined,
  },
}

async function bodyIn(language: 'en' | 'fa'): Promise<string> {
  const display = () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language }) as const
  return (await rig(ports, { display }).app.inject('/')).body
}

it('why an alert was held back or not taken is said in Persian, and what others wrote stays', async () => {
  const body = await bodyIn('fa')
  for (const [, said] of causes) expect(body).toMatch(said)
  for (const [, said] of failures) expect(body).toContain(`: ${said}</p>`)
  expect(body).not.toContain(english)
  expect(body).toContain('<small>اتصال برقرار نشد: <bdi dir="ltr">ECONNREFUSED</bdi></small>')
  // A comment of an operator on a pause is no reason of the bridge, even where it is the same word.
  expect(body).toContain('<small><bdi dir="ltr">timeout</bdi></small>')
})

it.each(['fa', 'en'] as const)(
  'what an operator wrote of a pause is read in its own direction (%s)',
  async (language) => {
    const body = await bodyIn(language)
    // Else its last words would stand where the first ones are read.
    expect(body).toContain('<small><bdi dir="rtl">انتقال Slack تا فردا</bdi></small>')
  },
)

it('the English page shows the sentences as they are', async () => {
  const body = await bodyIn('en')
  expect(body.split(english)).toHaveLength(causes.length + 1)
  for (const [said] of failures) expect(body).toContain(`: <bdi dir="ltr">${said}</bdi></p>`)
  expect(body).toContain('<small>connect: ECONNREFUSED</small>')
})

it('the English page shows the end of a mute or throttle in the configured zone', async () => {
  const until = '2026-11-21T20:30:00.000Z'
  const withheld: WithheldCause = { ...none, route: 'r3', reason: 'throttled', until }
  const data = [row({ state: 'held', reason: `held back by route r3: throttled until ${until}`, withheld })]
  const deliveries = { ...ports.deliveries, search: async () => ({ data, looked: 1 }) }
  const display = () => ({ timeZone: 'Asia/Tehran', calendar: 'gregorian', language: 'en' }) as const
  const { body } = await rig({ ...ports, deliveries } as Partial<AdminPorts>, { display }).app.inject('/')
  expect(body.replace(/<[^>]*>/g, '')).toMatch(/throttled until (2026-11-22 )?00:00:00 \(/)
})

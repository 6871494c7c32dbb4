import { describe, expect, it } from 'vitest'
import { alertKey, parseRow } from '../../src/alert/alert.ts'
import { fromJobData, jobId, toJobData } from '../../src/alert/job.ts'
import { titleOf } from '../../src/alert/text/display.ts'

const row = {
  id: 4711,
  kind: 'price',
  symbol: 'فولاد',
  slug: 'foolad',
  payload: ['last=5230'],
  headline: 'فولاد از ۵۲۳۰ گذشت',
  url: 'https://example.com/a/4711',
  why: null,
  ruleIds: ['12'],
  firedAt: '2026-11-21T09:00:00+03:30',
  notifiedAt: null,
  channels: ['push'],
  isRead: false,
}

describe('a row of the feed', () => {
  it('becomes an alert that keeps every field of it, known or not', () => {
    const parsed = parseRow('main', { ...row, brandNew: { deep: [1] } })
    expect(parsed).toMatchObject({
      ok: true,
      alert: { id: 4711, firedAtMs: Date.parse('2026-11-21T05:30:00Z') },
    })
    expect(parsed.ok && parsed.alert.row).toEqual({ ...row, brandNew: { deep: [1] } })
  })

  it.each([
    ['id', '4711'],
    ['id', 1.5],
    ['id', -1],
    ['id', 0],
    ['id', 2 ** 53],
    ['id', null],
    ['id', undefined],
  ])('whose %s is %j does not parse, and the reason names the field', (field, value) => {
    const parsed = parseRow('main', { ...row, [field]: value })
    expect(parsed).toMatchObject({ ok: false, reason: expect.stringContaining(field) })
  })

  it.each([[null], ['text'], [[row]], [undefined], [7]])('that is %j does not parse', (value) => {
    expect(parseRow('main', value).ok).toBe(false)
  })

  it.each<[field: string, value: unknown, taken: object]>([
    ['headline', 7, { headline: '7' }],
    ['headline', null, { headline: '' }],
    ['headline', { text: 'x' }, { headline: 'text=x' }],
    ['kind', undefined, { kind: '' }],
    ['kind', ['price', 'screen'], { kind: 'price, screen' }],
    ['symbol', 12, { symbol: '12' }],
    ['symbol', [], { symbol: null }],
    ['why', ['one', 'two'], { why: 'one\ntwo' }],
    ['url', undefined, { url: '' }],
    ['url', ['https://example.com/'], { url: '' }],
    ['ruleIds', null, { ruleIds: [] }],
    ['ruleIds', '12', { ruleIds: ['12'] }],
    ['ruleIds', { 0: '12', 3: 15 }, { ruleIds: ['12', '15'] }],
    ['ruleIds', [[12], null], { ruleIds: ['[12]', 'null'] }],
    ['firedAt', null, { firedAt: '', firedAtMs: null }],
    ['firedAt', 1_767_225_600, { firedAt: '1767225600', firedAtMs: null }],
    ['isRead', 'no', {}],
    ['payload', null, {}],
    ['channels', 5, {}],
    ['notifiedAt', {}, {}],
    ['slug', false, { slug: 'false' }],
  ])('whose %s is %j is taken all the same, and kept as it came', (field, value, taken) => {
    const odd = { ...row, [field]: value }
    const parsed = parseRow('main', odd)
    expect(parsed).toMatchObject({ ok: true, alert: { id: 4711, ...taken } })
    expect(parsed.ok && parsed.alert.row).toEqual(odd)
  })

  it('needs no more than its id', () => {
    const parsed = parseRow('main', { id: 5 })
    expect(parsed).toMatchObject({ ok: true, alert: { id: 5, headline: '', row: { id: 5 } } })
    expect(parsed.ok && titleOf(parsed.alert)).toBe('main 5')
  })

  it('is taken with rule ids as numbers, without optional fields, and with a date that is none', () => {
    const { symbol, slug, why, notifiedAt, ...required } = row
    const parsed = parseRow('main', { ...required, ruleIds: [12], firedAt: 'yesterday' })
    expect(parsed).toMatchObject({ ok: true, alert: { ruleIds: ['12'], symbol: null, firedAtMs: null } })
  })
})

describe('the job of an alert', () => {
  const parsed = parseRow('main', row)
  if (!parsed.ok) throw new Error(parsed.reason)
  const { alert } = parsed

  it('comes back from its stored form as it went in', () => {
    const job = { sink: 'ops', alert, seenAtMs: alert.firedAtMs ?? 0, target: 'desk@example.com' }
    expect(fromJobData('ops', JSON.parse(JSON.stringify(toJobData(job))))).toEqual({ ok: true, job })
  })

  it('has no firing time that cannot be true, or that lay ahead when it was seen', () => {
    const seenAtMs = Date.parse('2026-11-21T09:00:00Z')
    const read = (firedAt: string) => {
      const data = { v: 1, source: 'main', seenAtMs, row: { ...row, firedAt } }
      const parsed = fromJobData('ops', data)
      return parsed.ok ? parsed.job.alert.firedAtMs : undefined
    }
    for (const firedAt of ['1405-08-30T09:00:00Z', '1970-01-01T00:00:00Z', '9999-01-01T00:00:00Z'])
      expect(read(firedAt)).toBeNull()
    // A clock of ours that is a few minutes behind takes no date out of a message.
    expect(read('2026-11-21T09:05:00Z')).toBe(seenAtMs + 300_000)
  })

  it.each([
    [{}],
    [null],
    [{ v: 2, source: 'main', seenAtMs: 5, row }],
    [{ v: 1, source: 'main', seenAtMs: 5, row: {} }],
  ])('that is stored as %j is refused with a reason', (data) => {
    expect(fromJobData('ops', data)).toMatchObject({ ok: false, reason: expect.any(String) })
  })

  it('has an id that is never all digits and keeps the targets of one sink apart', () => {
    expect(alertKey(alert)).toBe('main.4711')
    expect(jobId(alert)).toBe('main.4711')
    expect(jobId(alert, 'a1')).not.toBe(jobId(alert, 'b2'))
  })
})

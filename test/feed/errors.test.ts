import { describe, expect, it } from 'vitest'
import { type FeedErrorCode, refusalOf, shortLine } from '../../src/feed/errors.ts'

const nowMs = Date.UTC(2026, 4, 3, 9, 0, 0)

function refuse(status: number, body?: unknown, retryAfter?: string) {
  const endpoint = { path: '/api/v1/alerts', scope: 'api:alerts' } as const
  return refusalOf({ status, body, retryAfter, nowMs, hidden: ['canary-token'], endpoint })
}

const envelope = (code: string, detail?: unknown, message = 'Said the API.') => ({
  error: { code, message, detail },
})

describe('a refusal', () => {
  it.each<[number, string]>([
    [401, 'unauthenticated'],
    [403, 'scope_required'],
    [403, 'plan_required'],
    [429, 'rate_limited'],
    [404, 'not_found'],
    [422, 'invalid_request'],
    [500, 'server_error'],
  ])('of status %i is known by its code %s', (status, code) => {
    expect(refuse(status, envelope(code))).toMatchObject({ name: 'FeedError', code, status })
  })

  it('follows the code where the status says something else', () => {
    expect(refuse(400, envelope('rate_limited'))).toMatchObject({ code: 'rate_limited', status: 400 })
  })

  it.each<[number, FeedErrorCode]>([
    [400, 'unexpected_status'],
    [401, 'unauthenticated'],
    [403, 'unexpected_status'],
    [404, 'not_found'],
    [405, 'unexpected_status'],
    [422, 'invalid_request'],
    [429, 'rate_limited'],
    [500, 'server_error'],
    [502, 'server_error'],
    [503, 'server_error'],
    [599, 'server_error'],
    [204, 'unexpected_status'],
  ])('of status %i without a readable envelope is %s', (status, code) => {
    for (const body of [
      undefined,
      null,
      'text',
      [],
      {},
      { error: 'no' },
      { error: { code: 7 } },
      envelope('brand_new'),
    ])
      expect(refuse(status, body)).toMatchObject({ code, status })
  })

  it('still knows the code when message and detail are not what they should be', () => {
    expect(refuse(403, { error: { code: 'plan_required', message: 7, detail: 'none' } }).code).toBe(
      'plan_required',
    )
  })
})

describe('the wait that a refusal asks for', () => {
  it.each<[string, string | undefined, number | undefined]>([
    ['seconds', '7', 7_000],
    ['an HTTP date', 'Sun, 03 May 2026 09:01:30 GMT', 90_000],
    ['a date that has passed', 'Sun, 03 May 2026 08:00:00 GMT', 0],
    ['garbage', 'soon', undefined],
    ['a negative number', '-5', undefined],
    ['an endless number', '9'.repeat(400), undefined],
    ['nothing', undefined, undefined],
  ])('is read from %s', (_what, header, retryAfterMs) => {
    expect(refuse(429, envelope('rate_limited'), header)).toMatchObject({ limit: 'minute', retryAfterMs })
  })

  it.each<[unknown, number]>([
    [10_800, 10_800_000],
    ['10800', 10_800_000],
    [0, 0],
  ])('is detail.retryAfter %j before the header, and the limit is the budget', (retryAfter, retryAfterMs) => {
    expect(refuse(429, envelope('rate_limited', { retryAfter }), '7')).toMatchObject({
      limit: 'budget',
      retryAfterMs,
    })
  })

  it('falls back on the header when detail.retryAfter is there but says nothing', () => {
    expect(refuse(429, envelope('rate_limited', { retryAfter: 'tomorrow' }), '7')).toMatchObject({
      limit: 'budget',
      retryAfterMs: 7_000,
    })
  })

  it('is kept for other statuses, which have no limit', () => {
    expect(refuse(503, undefined, '30')).toMatchObject({
      code: 'server_error',
      limit: undefined,
      retryAfterMs: 30_000,
    })
  })
})

describe('what an invalid request names', () => {
  it.each([
    ['a list', ['page', 'sort']],
    ['keys', { page: ['must be at least 1'], sort: 'unknown' }],
  ])('is read from %s', (_what, fields) => {
    const error = refuse(422, envelope('invalid_request', { fields }))
    expect(error.fields).toEqual(['page', 'sort'])
    expect(error.message).toContain('page, sort')
  })

  it('may be missing', () => {
    expect(refuse(422, envelope('invalid_request')).fields).toBeUndefined()
  })
})

describe('the message', () => {
  it('is one short line, whatever the API says', () => {
    const shout = `a\r\nb\u0000c\u001b[31md\u202ee${'x'.repeat(5_000)}`
    const { message } = refuse(500, envelope('server_error', undefined, shout))
    expect(message).toContain('a b c [31md e')
    expect(message).not.toMatch(/\p{Cc}|\p{Cf}/u)
    expect(message.length).toBeLessThan(300)
  })

  it('never repeats the token, even when the API does', () => {
    const { message } = refuse(
      401,
      envelope('unauthenticated', undefined, 'the token canary-token is unknown'),
    )
    expect(message).toContain('the token [redacted] is unknown')
  })

  it('is cut between characters', () => {
    expect(shortLine('🪙'.repeat(300), 10)).toBe(`${'🪙'.repeat(9)}…`)
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createUrlTemplate, urlTemplateProblem } from '../../src/sinks/template/url-template.ts'
import { anyText } from '../support/any-text.ts'
import { alertOf, englishDisplay } from './samples.ts'

const fill = (text: string, fields: Record<string, unknown> = {}) =>
  createUrlTemplate(text, englishDisplay).render({ alert: alertOf(fields) }).href

test('an address without values stays as it is', () => {
  expect(fill('https://example.com/a?b=c')).toBe('https://example.com/a?b=c')
})

test('values stand encoded in the path and the query', () => {
  expect(
    fill('https://example.com/{{ source }}/{{ symbol }}?text={{ headline }}', {
      symbol: 'a/b?c#d',
      headline: 'x&y=z +1',
    }),
  ).toBe('https://example.com/main/a%2Fb%3Fc%23d?text=x%26y%3Dz%20%2B1')
})

describe('a value', () => {
  const nasty = fc.oneof(
    fc.constantFrom('..', '.', '%2e%2e', '/', '//', '\\', '@', ':', '#', '?', '&', '\r\n', '\ud800', ''),
    anyText({ maxLength: 8 }),
  )

  test('never leads elsewhere: same host, same depth, same parameters, or nothing at all', () => {
    fc.assert(
      fc.property(nasty, nasty, nasty, (symbol, kind, headline) => {
        const text = 'https://example.com/api/{{ symbol }}{{ kind }}/end?t={{ headline }}&k=1'
        let url: URL
        try {
          url = new URL(fill(text, { symbol, kind, headline }))
        } catch (error) {
          expect(String(error)).toContain('another address')
          return
        }
        expect(url.origin).toBe('https://example.com')
        expect(url.pathname.split('/')).toHaveLength(4)
        expect(url.pathname).toMatch(/^\/api\/[^/]+\/end$/)
        expect([...url.searchParams.keys()]).toEqual(['t', 'k'])
        expect(url.hash + url.username + url.password).toBe('')
      }),
      { numRuns: 500 },
    )
  })

  test.each(['..', '.', ''])('"%s" as a step of the path is refused', (symbol) => {
    expect(() => fill('https://example.com/a/{{ symbol }}/b', { symbol })).toThrow('another address')
  })
})

describe('an address that cannot be used', () => {
  test.each([
    ['ftp://example.com/', 'expected an address'],
    ['{{ url }}', 'before the first value'],
    ['https://{{ source }}/', 'before the first value'],
    ['https://example.com{{ symbol }}/', 'before the first value'],
    ['https://user:canary@example.com/{{ symbol }}', 'does not belong'],
    ['https://example.com/canary/{{ symbol | raw }}', 'cannot be used'],
    ['https://example.com/canary/{{ nothing }}', 'cannot be used'],
    ['https://example.com/canary/{{ symbol', 'cannot be used'],
  ])('%s is told without being quoted', (text, problem) => {
    expect(urlTemplateProblem(text)).toContain(problem)
    expect(urlTemplateProblem(text)).not.toContain('canary')
  })

  test('takes nothing unencoded, not even as JSON', () => {
    expect(fill('https://example.com/?q={{ ruleIds | json }}')).toBe(
      'https://example.com/?q=%5B%2212%22%2C%2240%22%5D',
    )
  })
})

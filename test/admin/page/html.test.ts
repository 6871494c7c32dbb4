import fc from 'fast-check'
import { expect, test } from 'vitest'
import { foreign, foreignLink } from '../../../src/admin/page/foreign.ts'
import { html } from '../../../src/alert/text/html.ts'
import { anyText } from '../../support/any-text.ts'

test('whatever stands in a placeholder is escaped, in text and in attributes', () => {
  const evil = `<script>alert("1")</script>&'`
  const escaped = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;'
  expect(html`<p title="${evil}">${evil}</p>`.markup).toBe(`<p title="${escaped}">${escaped}</p>`)
})

test('no text whatsoever gets a tag or a quote through', () => {
  fc.assert(
    fc.property(anyText(), (text) => {
      expect(html`${text}`.markup).not.toMatch(/[<>"']/)
      expect(foreign(text).markup.replace(/^<bdi dir="(rtl|ltr)">|<\/bdi>$/g, '')).not.toMatch(/[<>"']/)
    }),
  )
})

test('pieces of HTML, lists and numbers go in as they are; nothing, null and false leave no trace', () => {
  const items = ['a', 'b'].map((each) => html`<li>${each}</li>`)
  expect(html`<ul>${items}</ul>${0}${null}${undefined}${false}`.markup).toBe('<ul><li>a</li><li>b</li></ul>0')
})

test('text from outside keeps its direction to itself and loses its control characters', () => {
  expect(foreign('فولاد\u202E\u2066\r\n5200\u0000').markup).toBe('<bdi dir="rtl">فولاد 5200</bdi>')
  expect(foreign('خانه\u200Cها').markup).toContain('\u200C')
})

test('only http and https addresses become links', () => {
  expect(foreignLink('https://example.com/?a=1&b="2"', 'x').markup).toBe(
    '<a href="https://example.com/?a=1&amp;b=&quot;2&quot;" rel="noopener noreferrer" target="_blank"><bdi dir="ltr">x</bdi></a>',
  )
  for (const url of ['javascript:alert(1)', ' javascript:alert(1)', 'data:text/html,x', '/relative', ''])
    expect(foreignLink(url, 'x').markup, url).toBe('<bdi dir="ltr">x</bdi>')
})

test('a Persian line that starts with a Latin ticker reads from the right', () => {
  expect(foreign('XAU_USD از ۲۶۵۰ دلار گذشت').markup).toContain('dir="rtl"')
  expect(foreign('free-market dollar (دلار) is below 93,600').markup).toContain('dir="ltr"')
})

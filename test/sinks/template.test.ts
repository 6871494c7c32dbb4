import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Escaping, escapingOf } from '../../src/sinks/template/escaping.ts'
import { createTemplate, templateProblem } from '../../src/sinks/template/template.ts'
import { renderedCharsMax } from '../../src/sinks/template/writer.ts'
import { anyText } from '../support/any-text.ts'
import { alertOf, english, englishDisplay, hostile } from './samples.ts'

const fill = (text: string, escaping: Escaping, alert = english) =>
  createTemplate(text, escaping, englishDisplay).render({ alert })

describe('a template', () => {
  test('has what the alert has, and the upstream row whole', () => {
    const text =
      '{{ id }} {{ alertId }} {{ source }} {{ kind }} {{ symbol }} {{ ruleIds | join: "+" }} {{ delivery.slug }} {{ heldBack }} {{ time }}'
    expect(fill(text, 'none')).toBe(
      'main.4712 4712 main screen XAU_USD 7 foolad 0 Saturday, 30 Aban 1405 (21 November 2026), 09:00:05 Iran Time',
    )
  })

  test('shows dates in the configured zone', () => {
    expect(fill('{{ firedAt | date: "%H:%M" }}', 'none')).toBe('09:00')
  })

  test('has what the context of the route found, and null without one', () => {
    const template = createTemplate('{"last": {{ context.price.data.last }}}', 'json', englishDisplay)
    const parts = { price: { data: { last: 5_230 }, at: '2026-11-21T05:30:06.000Z' } }
    expect(template.render({ alert: english, context: { parts, skipped: [], names: {} } })).toBe(
      '{"last": 5230}',
    )
    expect(template.render({ alert: english })).toBe('{"last": null}')
  })

  test('is left empty by what is not there', () => {
    expect(fill('[{{ why }}{{ delivery.nothing.at.all }}]', 'none', alertOf({ why: null }))).toBe('[]')
  })
})

describe('the kind of content', () => {
  test.each([
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['application/vnd.api+json', 'json'],
    ['text/html', 'markup'],
    ['application/soap+xml', 'markup'],
    ['application/x-www-form-urlencoded', 'form'],
    ['text/plain', 'none'],
  ])('%s is escaped as %s', (contentType, escaping) => {
    expect(escapingOf(contentType)).toBe(escaping)
  })
})

describe('upstream text', () => {
  const anything = anyText({ maxLength: 60 })

  test('is the same string again in JSON, whatever it holds', () => {
    fc.assert(
      fc.property(anything, (headline) => {
        const alert = alertOf({ headline })
        const body = fill('{ "a": "{{ headline }}", "b": {{ headline | json }} }', 'json', alert)
        // What is no text to UTF-8 is no text on the wire either.
        expect(JSON.parse(body)).toEqual({ a: headline, b: headline })
      }),
    )
  })

  test('makes no element and no attribute in markup', () => {
    const made = fill('<p title="{{ headline }}">{{ why }}</p>', 'markup', hostile)
    expect(made.match(/[<>"]/g)?.join('')).toBe('<"">' + '<>')
  })

  test('adds no field to a form', () => {
    const made = fill('text={{ headline }}', 'form', alertOf({ headline: 'a&admin=1 %26 \ud800' }))
    expect([...new URLSearchParams(made)]).toEqual([['text', 'a&admin=1 %26 \ufffd']])
  })

  test('is never read as a template itself', () => {
    expect(fill('{{ headline }}', 'none', alertOf({ headline: '{{ source }}{% raw %}' }))).toBe(
      '{{ source }}{% raw %}',
    )
  })
})

describe('the sandbox', () => {
  test.each([
    '{{ delivery.constructor }}',
    '{{ delivery.__proto__ }}',
    '{{ ruleIds.constructor }}',
    '{{ headline.constructor.constructor }}',
    '{{ delivery.toString }}',
    '{{ delivery["hasOwnProperty"] }}',
  ])('shows nothing that is inherited: %s', (text) => {
    expect(fill(text, 'none')).toBe('')
  })

  test.each([
    '{% include "/etc/hostname" %}',
    '{% render "package.json" %}',
    '{% layout "a" %}',
    '{% block a %}{% endblock %}',
    '{{ process }}',
    '{{ env }}',
  ])('has no way to a file or the process: %s', (text) => {
    expect(templateProblem(text, 'none')).toMatch(/not found|knows no/)
  })

  test.each([
    ['a loop without end', '{% for i in (1..15000000) %}{% for j in (1..15000) %}x{% endfor %}{% endfor %}'],
    [
      'a text that doubles',
      '{% assign a = "xxxxxxxx" %}{% for i in (1..60) %}{% assign a = a | append: a %}{% endfor %}{{ a }}',
    ],
    [
      'a capture that doubles',
      '{% assign a = "xxxxxxxx" %}{% for i in (1..60) %}{% capture a %}{{ a | raw }}{{ a | raw }}{% endcapture %}{% endfor %}{{ a }}',
    ],
    [
      'a text of gigabytes',
      '{{ "x" | append: "y" | replace: "", "zzzzzzzzzzzzzz" }}{% for i in (1..9000000) %}x{% endfor %}',
    ],
  ])('ends %s soon, and in little memory', (_what, text) => {
    const startedAt = performance.now()
    const before = process.memoryUsage().rss
    expect(templateProblem(text, 'none')).toMatch(/limit exceeded|failed|more than/)
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(600_000_000)
  })

  test.each([
    '{{ delivery.payload | where: "key", "last" | first }}',
    '{{ delivery.payload | find: "key", "last" }}',
    `{% assign found = ${Array(8).fill('delivery.payload contains "last"').join(' or ')} %}`,
  ])('ends what looks at each entry of a list that upstream made very long: %s', (text) => {
    // Seconds of work, so that no machine is through within the limit.
    const alert = alertOf({ payload: Array<number>(1_500_000).fill(1) })
    expect(() => fill(text, 'none', alert)).toThrow('limit exceeded')
    expect(fill(text, 'none')).toBe('')
  })

  test('is written also where the machine is frozen meanwhile, or has no time for it', () => {
    let nowMs = performance.now()
    vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 1_000))
    onTestFinished(() => void vi.restoreAllMocks())
    expect(fill('{{ kind }} {{ id }}', 'none')).toBe('screen main.4712')
  })

  test('gives up what is longer than any receiver would take', () => {
    const alert = alertOf({ headline: 'x'.repeat(renderedCharsMax / 2) })
    expect(() => fill('{{ headline }}{{ headline }} ', 'none', alert)).toThrow('more than')
  })
})

describe('a mistake', () => {
  test.each([
    ['{{ headline | append: "CANARY"', 'output "{{ …" not closed, line:1, col:1'],
    ['{% if headline == "CANARY" %}', 'tag {% if … not closed, line:1, col:1'],
    ['{% tablerow "CANARY" %}', 'illegal tag: {% tablerow …, line:1, col:1'],
    ['{% raw %}\nCANARY', 'raw "{% raw …" not closed, line:1, col:10'],
    ['{% assign key = "CANARY', 'tag "{% assign …" not closed, line:1, col:1'],
  ])('in %s is told without what the template says, such as a key of the receiver', (text, problem) => {
    expect(templateProblem(text, 'none')).toBe(problem)
  })

  test.each([
    ['{{ headline', 'json', 'not closed'],
    ['{% if symbol %}', 'none', 'not closed'],
    ['{{ headline | shout }}', 'none', 'undefined filter: shout'],
    ['{{ headlin }}', 'none', 'knows no headlin'],
    ['{ "a": {{ headline | raw }} }', 'json', 'no valid JSON'],
    ['{ "a": "{{ headline | raw }}" }', 'json', 'no valid JSON'],
    ['{ "a": {{ ruleIds }}, }', 'json', 'no valid JSON'],
    [' '.repeat(70_000), 'none', 'at most'],
  ] as const)('in %s is found before any alert is', (text, escaping, problem) => {
    expect(templateProblem(text, escaping)).toContain(problem)
  })

  test.each([
    '{ "a": "{{ headline }}", "rules": {{ ruleIds }}, "why": {{ why | json }} }',
    '[{% for rule in ruleIds %}"{{ rule }}"{% unless forloop.last %},{% endunless %}{% endfor %}]',
    '{% if symbol %}{ "s": "{{ symbol }}" }{% else %}{}{% endif %}',
    '{{ delivery | json }}',
    '{ "a": {{ headline }}, "b": "{{ headline | json }}" }',
  ])('is not seen in %s', (text) => {
    expect(templateProblem(text, 'json')).toBeUndefined()
  })
})

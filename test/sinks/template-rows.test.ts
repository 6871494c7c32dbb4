import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import { parseJson } from '../../src/alert/json/json-number.ts'
import type { Escaping } from '../../src/sinks/template/escaping.ts'
import { createTemplate, templateProblem } from '../../src/sinks/template/template.ts'
import { urlTemplateProblem } from '../../src/sinks/template/url-template.ts'
import { anyText } from '../support/any-text.ts'
import { alertOf, english, englishDisplay } from './samples.ts'

const fill = (text: string, escaping: Escaping, alert: Alert) =>
  createTemplate(text, escaping, englishDisplay).render({ alert })

/** An alert whose row holds anything at all, as far as the row is the template's to read. */
function alertWith(row: Readonly<Record<string, unknown>>): Alert {
  return { ...english, symbol: null, why: null, row: { ...english.row, ...row } }
}

const json = (text: string, row: Readonly<Record<string, unknown>> = {}) =>
  JSON.parse(fill(text, 'json', alertWith(row))) as unknown

describe('a value in JSON', () => {
  test.each([
    ['null', null, '', null],
    ['a text', 'a "b" \\ \n \u0001 \ud800 </script> {{ x }}', 'a "b" \\ \n \u0001 \ud800 </script> {{ x }}'],
    ['a number', 12.5, '12.5', 12.5],
    ['a boolean', false, 'false', false],
    ['a list', ['a"', 1, null], '["a\\"",1,null]', ['a"', 1, null]],
    ['an object', { a: '"' }, '{"a":"\\""}', { a: '"' }],
    ['what is missing', undefined, '', null],
  ])(
    '%s is text between quotation marks, and itself outside of them',
    (_what, v, inside, outside: unknown = inside) => {
      expect(json('{ "in": "<{{ delivery.v }}>", "out": {{ delivery.v }} }', { v })).toEqual({
        in: `<${inside}>`,
        out: outside,
      })
    },
  )

  test.each([
    ['{{ delivery.v | default: "none" }}', 'none'],
    ['{{ delivery.v | date: "%H" }}', null],
    ['{{ delivery.v | upcase }}', ''],
    ['{{ delivery.v | json }}', null],
    ['{{ delivery.v | append: "!" }}', '!'],
    ['{{ delivery.v | plus: 1 }}', 1],
    ['{{ delivery.v | divided_by: 0 }}', null],
    ['{{ delivery.v.w.x }}', null],
    ['{{ delivery.v[3] }}', null],
  ])('null through a filter stays sound: %s', (output, outside) => {
    const inside = outside === null ? (output.includes('json') ? 'null' : '') : String(outside)
    const read = json(`{ "in": "${output}", "out": ${output} }`, { v: null }) as { in: string; out: unknown }
    expect(output.includes('divided_by') ? '' : read.in).toBe(output.includes('divided_by') ? '' : inside)
    expect(read.out).toEqual(outside)
  })

  test.each([
    ['{{ delivery.big }} {{ delivery.price }}', '9007199254740995 1.1'],
    ['{{ delivery | json }}', '{"big":9007199254740995,"price":1.10,"third":0.33333333333333333333}'],
    ['{{ delivery.big | append: "!" }}', '9007199254740995!'],
    ['{{ delivery.third | round: 2 }} {{ delivery.price | plus: 1 }}', '0.33 2.1'],
    ['{% if delivery.price == 1.1 and delivery.third < 1 and 1 <= delivery.price %}yes{% endif %}', 'yes'],
    ['{% case delivery.price %}{% when 1.1 %}yes{% endcase %}', 'yes'],
    ['{{ delivery.list | uniq | join: " " }}', '1.1 9007199254740995'],
  ])('a number that JavaScript would change is a number all the same: %s', (text, written) => {
    const row = parseJson(
      '{"big":9007199254740995,"price":1.10,"third":0.33333333333333333333}',
    ) as Alert['row']
    const list = parseJson('[1.10,9007199254740995,1.10,9007199254740995]')
    const whole = text.includes('list') ? { ...row, list } : row
    expect(fill(text, 'none', { ...english, row: whole })).toBe(written)
  })

  test('as JSON between quotation marks is its text, so that it can be read again', () => {
    const { body } = json('{ "body": "{{ delivery | json }}" }', { v: '"\\' }) as { body: string }
    expect(JSON.parse(body)).toMatchObject({ v: '"\\', headline: english.headline })
  })

  test('of a cycle or an echo is escaped like any other', () => {
    expect(
      json('["{% cycle delivery.v, "b" %}", {% echo delivery.v %}, "{% liquid echo delivery.v %}"]', {
        v: '"',
      }),
    ).toEqual(['"', '"', '"'])
  })

  test('that a filter cannot decode is left as it is', () => {
    const text =
      '["{{ delivery.v | url_decode }}", "{{ delivery.w | url_encode }}", "{{ delivery.v | base64_decode }}"]'
    expect(json(text, { v: '100% "sure"', w: '\ud800' })).toEqual(['100% "sure"', '%EF%BF%BD', '100% "sure"'])
  })
})

describe('a captured text', () => {
  const nasty = 'a "b" \\ \n <i>&amp;'

  test.each([
    ['{ "a": "{{ c }}" }', { a: `say "hi": ${nasty}` }],
    ['{ "a": "{{ c | upcase }}" }', { a: `SAY "HI": ${nasty.toUpperCase()}` }],
    ['{ "a": "{{ c | append: c | size }}", "b": {{ c.size }} }', { a: '56', b: 28 }],
    ['{% assign d = c %}{ "a": "{{ d }}" }', { a: `say "hi": ${nasty}` }],
    ['{% capture d %}{{ c }}!{% endcapture %}{ "a": "{{ d }}" }', { a: `say "hi": ${nasty}!` }],
    ['{ "a": {{ c | json }} }', { a: `say "hi": ${nasty}` }],
    ['{% if c contains "hi" and c != "" and c != blank %}{ "a": 1 }{% endif %}', { a: 1 }],
    ['{% case c %}{% when "x" %}{ "a": 1 }{% else %}{ "a": 2 }{% endcase %}', { a: 2 }],
  ])('is escaped once in JSON: %s', (text, expected) => {
    const captured = `{% capture c %}say "hi": {{ delivery.v }}{% endcapture %}`
    expect(json(captured + text, { v: nasty })).toEqual(expected)
  })

  test('may hold a part of the JSON itself', () => {
    const text =
      '{% capture fields %}{% for v in delivery.vs %}{ "v": "{{ v }}", "w": {{ v }} }{% unless forloop.last %},{% endunless %}{% endfor %}{% endcapture %}'
    const expected = [
      { v: nasty, w: nasty },
      { v: '', w: null },
      { v: '1', w: 1 },
    ] // prettier
    expect(json(`${text}[{{ fields }}]`, { vs: [nasty, null, 1] })).toEqual(expected)
    expect(json(`${text}[{{ fields | raw }}]`, { vs: [nasty, null, 1] })).toEqual(expected)
    expect(json(`${text}["[{{ fields }}]"]`, { vs: [1] })).toEqual(['[{ "v": "1", "w": 1 }]'])
  })

  test('keeps its own elements in markup, and makes none of a value', () => {
    const captured = '{% capture c %}<b>{{ delivery.v }}</b>{% endcapture %}'
    for (const output of ['{{ c }}', '{{ c | raw }}'])
      expect(fill(captured + output, 'markup', alertWith({ v: '<&' }))).toBe('<b>&#60;&#38;</b>')
    expect(fill(`${captured}{{ c | upcase }}`, 'markup', alertWith({ v: '<&' }))).toBe(
      '&#60;B&#62;&#60;&#38;&#60;/B&#62;',
    )
  })

  test('is encoded once in a form', () => {
    const text = '{% capture c %}{{ delivery.v }}&b={{ delivery.v }}{% endcapture %}a={{ c }}'
    expect([...new URLSearchParams(fill(text, 'form', alertWith({ v: '&=% ' })))]).toEqual([
      ['a', '&=% '],
      ['b', '&=% '],
    ])
  })

  test('that doubles without a character ends soon', () => {
    const text =
      '{% for i in (1..60) %}{% capture a %}{{ a }}{{ a }}{{ delivery.nothing }}{% endcapture %}{% endfor %}{{ a }}'
    expect(templateProblem(text, 'json')).toMatch(/more than/)
  })
})

describe('any row', () => {
  const odd = fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '\n',
    '\u0000',
    '\u2028',
    '\ud800',
    '\udc00',
    '{{ id }}',
    '{% raw %}',
    '</script>',
    'فولاد\u200c',
    '%',
    '',
  ) // prettier
  const leaf = fc.oneof(odd, anyText({ maxLength: 8 }), fc.constantFrom(null, undefined))
  const value = fc.oneof(
    leaf,
    fc.jsonValue({ maxDepth: 2 }),
    fc.array(leaf, { maxLength: 3 }),
    fc.record({ k: leaf }),
  )
  const filters = [
    '',
    ' | default: "none"',
    ' | date: "%Y-%m-%d"',
    ' | upcase',
    ' | json',
    ' | append: delivery.b',
    ' | truncate: 5',
    ' | escape',
    ' | split: "," | first',
    ' | join: "+"',
    ' | size',
    ' | times: 2',
    ' | url_encode',
    ' | url_decode',
    ' | base64_decode',
    ' | strip_html | newline_to_br',
    ' | first',
    ' | compact | uniq | sort',
  ]
  const shapes = filters.flatMap((filter) => [
    `{ "a": "x{{ delivery.a${filter} }}y", "{{ delivery.b }}": {{ delivery.a${filter} }} }`,
    `{% capture c %}{{ delivery.a${filter} }}: {{ delivery.b }}{% endcapture %}{ "a": "{{ c }}", "b": "{{ c | upcase }}", "c": {{ c | json }} }`,
    `{% assign c = delivery.a${filter} %}[{{ c }}, "{{ c }}"{% for x in delivery.a %}, "{{ x }}", {{ x }}{% endfor %}]`,
    `{% if delivery.a %}{ "a": {{ delivery.a }} }{% else %}{ "b": "{{ delivery.b }}" }{% endif %}`,
  ])

  test('makes parseable JSON of any sound template', () => {
    const templates = shapes.map((text) => createTemplate(text, 'json', englishDisplay))
    fc.assert(
      fc.property(value, value, fc.nat(shapes.length - 1), (a, b, shape) => {
        const body = templates[shape]?.render({ alert: alertWith({ a, b }) }) ?? ''
        expect(() => JSON.parse(body), `${shapes[shape]} made ${body}`).not.toThrow()
      }),
      { numRuns: 3_000 },
    )
  })

  test('is not refused when such a template is checked', () => {
    expect(shapes.map((text) => templateProblem(text, 'json')).filter((each) => each !== undefined)).toEqual(
      [],
    )
  })
})

describe('a template that some row breaks is found before any alert is', () => {
  test.each([
    ['{ "a": {% if symbol %}1{% endif %} }', 'symbol is null'],
    ['{ "a": {% if delivery.slug %}1{% endif %} }', 'slug is null'],
    ['{ "a": {{ delivery.payload[0] | size }}{% unless delivery.payload[0] %}x{% endunless %} }', 'null'],
    [
      '[1{% for rule in ruleIds %}{% if forloop.first %},{% endif %}{{ rule }}{% else %},{% endfor %}]',
      'null',
    ],
    ['{ "a": "{{ headline | raw }}" }', 'quotation marks'],
    ['{ "a": "{{ delivery.channels | join: "," | raw }}" }', 'quotation marks'],
    ['{ "a": {% if headline.size > 5000 %}{% else %}1{% endif %} }', 'very long'],
  ])('%s', (text, row) => {
    expect(templateProblem(text, 'json')).toMatch(new RegExp(`^tried with an alert .*${row}.*: the template`))
  })

  test('also in an address, which is not quoted', () => {
    expect(urlTemplateProblem('https://example.com/canary/{{ symbol }}/x')).toMatch(
      /^tried with an alert whose symbol is null: .*default/,
    )
    expect(
      urlTemplateProblem('https://example.com/{{ symbol | default: "-" }}/x?y={{ why }}'),
    ).toBeUndefined()
    expect(urlTemplateProblem('https://example.com/{{ kind }}/{{ alertId }}')).toBeUndefined()
  })
})

test('an alert with nulls is as readable as one without', () => {
  const bare = alertOf({ symbol: null, why: null, slug: null, payload: {}, notifiedAt: null, channels: [] })
  const text =
    '{ "s": "{{ delivery.symbol }}", "w": {{ why }}, "p": "{{ delivery.payload[1] }}", "u": "{{ delivery.slug | upcase }}" }'
  expect(JSON.parse(fill(text, 'json', bare))).toEqual({ s: '', w: null, p: '', u: '' })
})

test('a template is tried with context, too', () => {
  const closes = (body: string) =>
    `{"closes":[{% for p in context.chart.data.points %}${body}{% endfor %}],"p":{{ context.price.data.last }}}`
  expect(templateProblem(closes('{{ p.close }},'), 'json')).toMatch(
    /^tried with an alert with its price and its chart: the template made no valid JSON/,
  )
  for (const body of ['{{ p.close }}{% unless forloop.last %},{% endunless %}', ''])
    expect(templateProblem(closes(body), 'json')).toBeUndefined()
})

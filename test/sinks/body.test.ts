import { describe, expect, test } from 'vitest'
import { type BodyOptions, bodyWriter } from '../../src/sinks/body.ts'
import { alertOf, englishDisplay, hostile, persian } from './samples.ts'

const write = (options: BodyOptions, alert = persian, heldBack?: number) => {
  const parcel = heldBack === undefined ? { alert } : { alert, heldBack }
  return JSON.parse(bodyWriter(options, englishDisplay).write(parcel)) as Record<string, unknown>
}

describe('a CloudEvent', () => {
  const event = (fields: Record<string, unknown> = {}) => write({ format: 'cloudevents' }, alertOf(fields))

  test('has every attribute that the alert can fill, and the row as its data', () => {
    expect(event()).toEqual({
      specversion: '1.0',
      id: 'main.4711',
      source: '/alert-bridge/main',
      type: 'alert.fired',
      time: '2026-11-21T05:30:05.000Z',
      subject: 'فولاد',
      datacontenttype: 'application/json',
      data: { source: 'main', delivery: persian.row },
    })
  })

  test('leaves out what would be empty or no time: the specification allows neither', () => {
    for (const firedAt of ['yesterday', '+020000-01-01T00:00:00Z'])
      expect(event({ symbol: null, firedAt })).not.toHaveProperty('time')
    expect(event({ symbol: ' \u0000 ' })).not.toHaveProperty('subject')
  })

  test('keeps controls out of its attributes, and everything in its data', () => {
    const made = write({ format: 'cloudevents' }, hostile)
    expect(made['subject']).not.toMatch(/\p{Cc}/u)
    expect(made['data']).toEqual({ source: 'main', delivery: hostile.row })
  })

  test('is of its own content type', () => {
    expect(bodyWriter({ format: 'cloudevents' }, englishDisplay).contentType).toBe(
      'application/cloudevents+json; charset=UTF-8',
    )
  })
})

describe('a body of a template', () => {
  test('is JSON unless it says otherwise', () => {
    const writer = bodyWriter({ template: '{ "t": "{{ headline }}" }' }, englishDisplay)
    expect(writer.contentType).toBe('application/json')
    expect(JSON.parse(writer.write({ alert: hostile }))).toEqual({
      t: hostile.headline,
    })
  })

  test('is told how many alerts were held back', () => {
    expect(write({ template: '{ "n": {{ heldBack }} }' }, persian, 3)).toEqual({ n: 3 })
    expect(write({ template: '{ "n": {{ heldBack }} }' })).toEqual({ n: 0 })
  })
})

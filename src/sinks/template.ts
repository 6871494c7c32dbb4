import { Liquid, type Template as Part } from 'liquidjs'
import type { Alert } from '../alert/alert.ts'
import { alertKey } from '../alert/alert.ts'
import { type Display, firedTime, linkOf, titleOf } from '../alert/display.ts'
import { sampleAlert } from '../alert/sample.ts'
import { toError } from '../lib/errors.ts'
import { SinkError } from './fault.ts'
import type { Parcel } from './sink.ts'

/**
 * Liquid templates of an operator, filled with text of anybody. A template reaches no file, no code and nothing that an
 * alert inherits; it is bounded in length, time and memory; and what is put into it is escaped for its place, so that
 * a headline can neither end a JSON string nor become an element.
 */
export interface Template {
  /** Throws a SinkError (`unrenderable`). */
  render(parcel: Parcel): string
}

/**
 * What becomes of `{{ value }}`. In a body, `{{ value | raw }}` stays as it is, and so does `{{ value | json }}` where
 * the body is JSON; in an address nothing does.
 */
export type Escaping = 'json' | 'markup' | 'form' | 'none' | 'url'

export const templateCharsMax = 65_536
const renderMsMax = 250
/** In units of the library: characters and list entries that filters make. */
const memoryUnitsMax = 16_000_000
export const renderedCharsMax = 4_000_000

/** The names that a template may use. */
const names = [
  'id',
  'source',
  'alertId',
  'kind',
  'symbol',
  'headline',
  'title',
  'url',
  'link',
  'why',
  'ruleIds',
  'firedAt',
  'time',
  'heldBack',
  'delivery',
] as const

export function escapingOf(contentType: string): Escaping {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/json$|\+json$/.test(type)) return 'json'
  if (/^(text\/html|text\/xml|application\/xml)$|\+xml$/.test(type)) return 'markup'
  return type === 'application/x-www-form-urlencoded' ? 'form' : 'none'
}

/** Throws a TypeError when `text` is no template: configs were checked by `templateProblem`. */
export function createTemplate(text: string, escaping: Escaping, display: Display): Template {
  const engine = engineOf(escaping, display)
  const parts = engine.parse(text)
  return { render: (parcel) => rendered(engine, parts, escaping, scopeOf(parcel, display)) }
}

/** What keeps `text` from being a template whose result is sound, tried with alerts of several kinds. */
export function templateProblem(text: string, escaping: Escaping): string | undefined {
  if (text.length > templateCharsMax) return `a template has at most ${templateCharsMax} characters`
  try {
    const engine = engineOf(escaping, trialDisplay)
    const unknown = engine
      .globalVariablesSync(engine.parse(text))
      .find((name) => !names.some((known) => known === name))
    if (unknown !== undefined) return `a template knows no ${unknown}; it knows ${names.join(', ')}`
    const template = createTemplate(text, escaping, trialDisplay)
    for (const alert of trialAlerts()) template.render({ alert })
    return undefined
  } catch (error) {
    return toError(error).message
  }
}

const escapes: Readonly<Record<Escaping, (value: unknown) => string>> = {
  json: (value) =>
    typeof value === 'string' ? JSON.stringify(value).slice(1, -1) : JSON.stringify(value ?? ''),
  markup: (value) => plain(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`),
  form: encoded,
  url: encoded,
  none: plain,
}

function encoded(value: unknown): string {
  return encodeURIComponent(plain(value).toWellFormed())
}

function plain(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function engineOf(escaping: Escaping, display: Display): Liquid {
  const engine = new Liquid({
    templates: {},
    relativeReference: false,
    cache: false,
    ownPropertyOnly: true,
    strictFilters: true,
    strictVariables: false,
    outputEscape: escapes[escaping],
    timezoneOffset: display.timeZone,
    locale: 'en-GB',
    parseLimit: templateCharsMax,
    renderLimit: renderMsMax,
    memoryLimit: memoryUnitsMax,
  })
  for (const tag of ['include', 'render', 'layout', 'block']) delete engine.tags[tag]
  engine.registerFilter('json', {
    raw: escaping === 'json' || escaping === 'none',
    handler: (value: unknown) => JSON.stringify(value ?? null),
  })
  if (escaping === 'url') delete engine.filters['raw']
  return engine
}

function rendered(engine: Liquid, parts: Part[], escaping: Escaping, scope: object): string {
  let text: string
  try {
    text = String(engine.renderSync(parts, scope))
  } catch (error) {
    throw new SinkError('unrenderable', `the template failed: ${toError(error).message}`)
  }
  if (text.length > renderedCharsMax)
    throw new SinkError('unrenderable', `the template made more than ${renderedCharsMax} characters`)
  if (escaping === 'json' && !isJson(text))
    throw new SinkError(
      'unrenderable',
      'the template made no valid JSON (a value stands between quotation marks, "{{ headline }}", or is written {{ headline | json }})',
    )
  return text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function scopeOf({ alert, heldBack = 0 }: Parcel, display: Display): Record<(typeof names)[number], unknown> {
  const { source, kind, symbol, headline, url, why, ruleIds, firedAt } = alert
  return {
    id: alertKey(alert),
    source,
    alertId: alert.id,
    kind,
    symbol,
    headline,
    title: titleOf(alert),
    url,
    link: linkOf(alert) ?? null,
    why,
    ruleIds,
    firedAt,
    time: firedTime(alert, display),
    heldBack,
    delivery: alert.row,
  }
}

const trialDisplay: Display = { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' }

/** One as it comes, one with whatever breaks a careless template, one with nothing in it. */
function trialAlerts(): Alert[] {
  const sample = sampleAlert(Date.UTC(2026, 0, 1))
  const nasty = 'it\'s "quoted"\n\\ <b>&amp;</b> {{ headline }} \u2028'
  return [
    sample,
    { ...sample, headline: nasty, why: nasty, symbol: nasty, kind: nasty },
    { ...sample, headline: '', why: null, symbol: null, ruleIds: [], firedAt: 'soon', firedAtMs: null },
  ]
}

import type { Template as Part } from 'liquidjs'
import { alertKey } from '../../alert/alert.ts'
import { readJson } from '../../alert/json/json.ts'
import { JsonNumber } from '../../alert/json/json-number.ts'
import { isCpuLimitSpent, oncePerCheck } from '../../alert/match/cpu-limit.ts'
import { type Display, firedTime, linkOf, titleOf } from '../../alert/text/display.ts'
import { toError } from '../../lib/errors.ts'
import type { Parcel } from '../sink.ts'
import { SinkError } from '../transport/fault.ts'
import { type Engine, engineFor, templateCharsMax } from './engine.ts'
import type { Escaping } from './escaping.ts'
import { cpuLimitSpent, trialProblem } from './trial.ts'

/**
 * Liquid templates of an operator, filled with text from outside. A template cannot read files, run code or read
 * inherited properties; it is bounded in length, time and memory; and values are escaped for the format around them, so
 * that a headline can neither end a JSON string nor become an element.
 */
interface Template {
  /** Throws a SinkError (`unrenderable`). */
  render(parcel: Parcel): string
}

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
  'context',
] as const

/** Throws when `text` is no template: configs were checked by `templateProblem`. */
export function createTemplate(text: string, escaping: Escaping, display: Display): Template {
  const engine = engineFor(escaping, display)
  const parts = engine.parse(text)
  return {
    render(parcel) {
      const text = rendered(engine, parts, scopeOf(parcel, display))
      if (escaping === 'json' && readJson(text) === undefined) throw new SinkError('unrenderable', noJson)
      return text
    },
  }
}

/** Why `text` is no template that gives a valid result for every alert. */
export function templateProblem(text: string, escaping: Escaping): string | undefined {
  return oncePerCheck(`template ${escaping} ${text}`, () => problemOf(text, escaping))
}

function problemOf(text: string, escaping: Escaping): string | undefined {
  if (isCpuLimitSpent()) return cpuLimitSpent
  const problem = formProblem(text, escaping)
  if (problem !== undefined) return problem
  const template = createTemplate(text, escaping, trialDisplay)
  return trialProblem((parcel) => template.render(parcel))
}

/** Why `text` is no template at all. */
export function formProblem(text: string, escaping: Escaping): string | undefined {
  if (text.length > templateCharsMax) return `a template has at most ${templateCharsMax} characters`
  try {
    const engine = engineFor(escaping, trialDisplay)
    const unknown = engine.namesIn(engine.parse(text)).find((name) => !names.some((known) => known === name))
    return unknown === undefined ? undefined : `a template knows no ${unknown}; it knows ${names.join(', ')}`
  } catch (error) {
    return withoutQuotes(toError(error).message)
  }
}

/** The library quotes the template, in which a receiver's key may stand: the name of the tag and the place are enough. */
function withoutQuotes(message: string): string {
  return message.replace(
    /(\{\{|\{%-? *[a-z]{0,20})[\s\S]*?("? not closed)?(, line:\d+, col:\d+)?$/,
    '$1 …$2$3',
  )
}

export const trialDisplay: Display = { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' }

const noJson =
  'the template made no valid JSON (values are escaped wherever they stand, "{{ headline }}" or {{ headline }}; what is written by | raw, and every comma and bracket, must fit for each alert)'

/** Tried twice, since a failure makes the alert a dead letter: the API may have sent objects that the library cannot turn into text. */
function rendered(engine: Engine, parts: Part[], scope: object): string {
  try {
    return engine.render(parts, scope)
  } catch {
    try {
      return engine.render(parts, speakable(scope) as object)
    } catch (error) {
      throw new SinkError('unrenderable', `the template failed: ${toError(error).message}`)
    }
  }
}

/** The same value; objects that cannot be turned into text (`{ "toString": 1 }`) are replaced by their JSON. */
function speakable(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  if (Array.isArray(value)) return value.map(speakable)
  if ('toString' in value && typeof value.toString === 'function' && !Object.hasOwn(value, 'valueOf'))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, speakable(inner)]))
  return JSON.stringify(value)
}

/** Values that take time to compute are computed only for a template that uses them. */
function scopeOf(
  { alert, heldBack = 0, context }: Parcel,
  display: Display,
): Record<(typeof names)[number], unknown> {
  const { source, kind, symbol, headline, url, why, ruleIds, firedAt } = alert
  return {
    id: alertKey(alert),
    source,
    alertId: alert.id,
    kind,
    symbol,
    headline,
    get title() {
      return titleOf(alert)
    },
    url,
    get link() {
      return linkOf(alert) ?? null
    },
    why,
    ruleIds,
    firedAt,
    get time() {
      return firedTime(alert, display)
    },
    heldBack,
    delivery: alert.row,
    context: context ? { ...context.parts, skipped: context.skipped } : null,
  }
}

import type { Context, FilterImplOptions, Liquid, Operators, Template } from 'liquidjs'
import { numberIn } from '../../alert/json/json-number.ts'
import type { Display } from '../../alert/text/display.ts'
import { asJson, type Escaping } from './escaping.ts'
import { asPlain, CaptureWriter, Fragment, liquid, OutputValue, Verbatim, Writer } from './writer.ts'

/** The library, restricted: no file, no code, no inherited properties; bounded in length, processor time and memory. */
export interface Engine {
  parse(text: string): Template[]
  /** The names that a template reads and does not set itself. */
  namesIn(parts: Template[]): string[]
  render(parts: Template[], scope: object): string
}

export const templateCharsMax = 65_536
const renderCpuMsMax = 250
/** In units of the library: characters and list entries that filters make. */
const memoryUnitsMax = 8_000_000

/** They are slow to make and few: one for each escaping and zone. */
const engines = new Map<string, Engine>()

export function engineFor(escaping: Escaping, { timeZone }: Pick<Display, 'timeZone'>): Engine {
  const key = `${escaping} ${timeZone}`
  const known = engines.get(key)
  if (known !== undefined) return known
  const made = createEngine(escaping, timeZone)
  engines.set(key, made)
  return made
}

function createEngine(escaping: Escaping, timeZone: string): Engine {
  const { CaptureTag, Context, defaultOperators, Liquid, toValueSync } = liquid()
  class Capture extends CaptureTag {
    override *render(context: Context): Generator<unknown, void, string> {
      const writer = new CaptureWriter()
      yield this.liquid.renderer.renderTemplates(this.templates, context, writer)
      context.bottom()[this.variable] = writer.captured()
    }
  }
  const engine = new Liquid({
    templates: {},
    relativeReference: false,
    cache: false,
    ownPropertyOnly: true,
    strictFilters: true,
    strictVariables: false,
    // The writer must know what is a value and what is the template's own text.
    outputEscape: (value: unknown) => new OutputValue(value) as unknown as string,
    timezoneOffset: timeZone,
    locale: 'en-GB',
    operators: { ...defaultOperators, contains },
    parseLimit: templateCharsMax,
    memoryLimit: memoryUnitsMax,
  })
  for (const tag of ['include', 'render', 'layout', 'block']) delete engine.tags[tag]
  engine.registerTag('capture', Capture)
  for (const [name, filter] of Object.entries(engine.filters))
    engine.registerFilter(name, tolerant(name, filter))
  registerOwnFilters(engine, escaping)
  return {
    parse: (text) => engine.parse(text),
    namesIn: (parts) => engine.globalVariablesSync(parts),
    render(parts, scope) {
      const writer = new Writer(escaping)
      const renderLimit = new CpuLimit() as unknown as Context['renderLimit']
      const context = new Context(scope, engine.options, { sync: true }, { liquid: engine, renderLimit })
      toValueSync(engine.renderer.renderTemplates(parts, context, writer))
      return writer.buffer
    },
  }
}

/** In the place of the library's own, which goes by the clock: a busy or frozen machine makes no alert a dead letter. */
class CpuLimit {
  readonly #since = process.threadCpuUsage()
  #looksAtMs = performance.now() + renderCpuMsMax

  check(nowMs: number): void {
    if (nowMs < this.#looksAtMs) return
    const { user, system } = process.threadCpuUsage(this.#since)
    const leftMs = renderCpuMsMax - (user + system) / 1_000
    if (leftMs < 0) throw new Error('template render limit exceeded')
    this.#looksAtMs = nowMs + leftMs
  }
}

function registerOwnFilters(engine: Liquid, escaping: Escaping): void {
  engine.registerFilter('json', {
    raw: escaping === 'none',
    handler: (value: unknown) => {
      const json = asJson(asPlain(value))
      return escaping === 'json' ? new Fragment([json]) : json
    },
  })
  engine.registerFilter('raw', {
    raw: true,
    handler: (value: unknown) => (value instanceof Fragment ? new Verbatim(value) : value),
  })
  if (escaping === 'url') delete engine.filters['raw']
}

/** Filters get texts, not fragments; one that cannot decode or encode a text of the API returns it unchanged. */
function tolerant(name: string, filter: FilterImplOptions): FilterImplOptions {
  const handler = typeof filter === 'function' ? filter : filter.handler
  return function (given: unknown, ...parameters: unknown[]) {
    const value = numberIn(asPlain(given))
    const apply = (input: unknown): unknown =>
      inTime(handler.call(this, input, ...parameters.map(plainParameter)), this.context)
    try {
      return apply(typeof value === 'string' ? value.toWellFormed() : value)
    } catch (error) {
      if (error instanceof URIError || name === 'base64_decode') return value
      throw error
    }
  }
}

/**
 * The library looks at its limit of time between the parts of a template. A filter (or `contains`) that looks at every entry
 * of a list is one part, and the API decides how many entries there are: it is held to the limit at each of its steps.
 */
function inTime(made: unknown, context: Context): unknown {
  if (!isSteps(made)) return made
  return {
    next(given: unknown) {
      context.renderLimit.check(performance.now())
      const { done = false, value } = made.next(given)
      return { done, value: inTime(value, context) }
    },
    throw: (error: unknown) => made.throw(error),
    return: (value: unknown) => made.return(value),
  }
}

function contains(left: unknown, right: unknown, context: Context): OperatorResult {
  return inTime(liquid().defaultOperators['contains']?.(left, right, context), context) as OperatorResult
}

type OperatorResult = ReturnType<Operators[string]>

function isSteps(made: unknown): made is Generator<unknown, unknown, unknown> {
  return typeof made === 'object' && made !== null && Symbol.iterator in made && 'next' in made
}

/** A named parameter is a pair of its name and its value. */
function plainParameter(parameter: unknown): unknown {
  const plainOf = (each: unknown) => numberIn(asPlain(each))
  return Array.isArray(parameter) ? parameter.map(plainOf) : plainOf(parameter)
}

import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import * as z from 'zod'
import { parseRow } from '../alert/alert.ts'
import { JsonNumber, mapNumbers, numberIn } from '../alert/json/json-number.ts'
import { cut, oneLine } from '../alert/text/text.ts'
import { foundText } from '../alert/text/value.ts'
import { errorCode } from '../lib/errors.ts'
import type { FeedPage, FeedRow, PageFigures } from '../walk/page.ts'
import { FeedError } from './errors.ts'

/**
 * From the body of an answer to a page. A page whose figures cannot be right is refused whole, because the walk counts with them; a row
 * that does not parse is quarantined and never stops its page.
 */
export type Parsed<T> =
  | { readonly ok: true; readonly page: T }
  | { readonly ok: false; readonly reason: string }

/** One page of the caller's alert rules, newest first. */
export interface RulesPage extends PageFigures {
  readonly rules: readonly AlertRule[]
  /** Rows that are no alert rule and were left out. */
  readonly skipped: number
}

/** An alert rule: its id, and every other field as it came. */
export type AlertRule = Readonly<z.infer<typeof ruleSchema>>

export const perPage = 100

/**
 * Levels of nesting that a row may have: far above what a row needs, and with the frame of a webhook still below what the
 * strictest JSON parsers accept (64).
 */
const depthMax = 32

/**
 * Values that a row may have, in all of its lists and objects: each costs time at every step, for every sink and attempt. A
 * row has about twenty. Such a row is longer than the copy that the quarantine keeps, so that no part of it is ever sent.
 */
export const rowValuesMax = 50_000

/**
 * Reads the body of one answer as JSON, and no more than `bytesMax` of it: the decoded bytes are counted while they arrive,
 * so neither an endless body nor a gzip bomb fills the memory. gzip is the only encoding that is requested and accepted.
 */
export async function readJsonBody(
  body: Readable,
  headers: { readonly contentType: string | undefined; readonly contentEncoding: string | undefined },
  bytesMax: number,
  parse: (text: string) => unknown = JSON.parse,
): Promise<unknown> {
  try {
    return parseText(await readText(body, headers, bytesMax), parse)
  } catch (thrown) {
    // A body that is not read keeps its connection busy.
    if (!body.destroyed) body.on('error', () => {}).destroy()
    throw fromGunzip(thrown)
  }
}

export function parseDeliveriesPage(source: string, asked: number, body: unknown): Parsed<FeedPage> {
  const envelope = parseEnvelope(asked, body)
  if (!envelope.ok) return envelope
  const { data, ...meta } = envelope.page
  const rows = new Map<string, FeedRow>()
  for (const raw of data) {
    const row = toFeedRow(source, raw)
    if (!rows.has(row.key)) rows.set(row.key, row)
  }
  return { ok: true, page: { ...meta, rows: [...rows.values()] } }
}

export function parseRulesPage(asked: number, body: unknown): Parsed<RulesPage> {
  const envelope = parseEnvelope(asked, body)
  if (!envelope.ok) return envelope
  const { data, ...meta } = envelope.page
  const rules = data.flatMap((raw) => {
    sanitize(raw)
    const parsed = ruleSchema.safeParse(raw)
    return parsed.success ? [parsed.data] : []
  })
  return { ok: true, page: { ...meta, rules, skipped: data.length - rules.length } }
}

async function readText(
  body: Readable,
  { contentType, contentEncoding = 'identity' }: Parameters<typeof readJsonBody>[1],
  bytesMax: number,
): Promise<string> {
  if (contentType !== undefined && !/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(contentType))
    throw new FeedError('not_json', `the API answered with ${cut(oneLine(contentType), 60)} instead of JSON`)
  const chunks: Buffer[] = []
  let bytes = 0
  let tooLarge: FeedError | undefined
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      bytes += chunk.length
      if (bytes > bytesMax) {
        tooLarge = new FeedError('too_large', `the API's answer is longer than ${bytesMax} bytes`)
        throw tooLarge
      }
      chunks.push(chunk)
    }
  }
  const encoding = contentEncoding.trim().toLowerCase()
  if (encoding === 'gzip' || encoding === 'x-gzip')
    await pipeline(body, createGunzip(), collect).catch((thrown: unknown) => {
      // Node.js 22 rejects with an AbortError here, whatever was thrown.
      throw tooLarge ?? thrown
    })
  else if (encoding === 'identity' || encoding === '') await pipeline(body, collect)
  else throw new FeedError('not_json', 'the API answered in a content encoding that was not asked for')
  return new TextDecoder().decode(Buffer.concat(chunks))
}

function parseText(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch (thrown) {
    if (thrown instanceof FeedError) throw thrown
    // The parser's own message quotes the body.
    throw new FeedError('not_json', 'the API answered with something that is not JSON')
  }
}

function fromGunzip(thrown: unknown): unknown {
  const code = errorCode(thrown)
  if (code === 'Z_BUF_ERROR') return new FeedError('connection_lost', "the API's answer ended early")
  if (code?.startsWith('Z_'))
    return new FeedError('not_json', "the API's answer is not the gzip it claims to be")
  return thrown
}

type Envelope = Omit<FeedPage, 'rows'> & { readonly data: readonly unknown[] }

/** What every page of the API has: rows, and four figures that must fit each other. */
export function parseEnvelope(asked: number, body: unknown): Parsed<Envelope> {
  const parsed = envelopeSchema.safeParse(body)
  if (!parsed.success) return refused(firstIssue(parsed.error, body))
  const { data, meta } = parsed.data
  if (meta.page !== asked) return refused(`meta.page is ${meta.page}, but page ${asked} was asked for`)
  if (data.length > perPage)
    return refused(`data holds ${data.length} rows, more than the ${perPage} of a page`)
  const pages = Math.max(1, Math.ceil(meta.total / perPage))
  if (meta.lastPage === 0 && (meta.total > 0 || data.length > 0))
    return refused('meta.lastPage is 0, but there are rows')
  // A walk does not come back for rows that a page leaves out. The feed may change by some rows between its counting and
  // reading.
  const promised = Math.min(perPage, meta.total - (asked - 1) * perPage)
  if (data.length * 2 < promised)
    return refused(`data holds ${data.length} rows, but meta.total says that page ${asked} has ${promised}`)
  // The greater of the two: a walk that reads one page too many gets an empty one; with one too few it loses rows.
  return { ok: true, page: { ...meta, lastPage: Math.max(pages, meta.lastPage), data } }
}

/** Cuts out what is nested deeper than the API does, so that the rest can be stored, shown and sent. */
function toFeedRow(source: string, raw: unknown): FeedRow {
  const values = sanitize(raw, depthMax, rowValuesMax)
  const parsed = parseRow(source, raw)
  if (!parsed.ok) return { ok: false, key: contentKey(raw), raw, reason: parsed.reason }
  const key = String(parsed.alert.id)
  // What is left of such a row is no alert as it came.
  if (values > rowValuesMax)
    return { ok: false, key, raw, reason: `row: ${values} values, more than ${rowValuesMax}` }
  return { ok: true, key, alert: parsed.alert }
}

/** A row without a usable id is recognised by its content. */
function contentKey(raw: unknown): string {
  return `raw-${createHash('sha256')
    .update(canonicalJson(mapNumbers(raw, numberIn)))
    .digest('hex')
    .slice(0, 32)}`
}

/** The same text for the same content, whatever the order of keys. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (!isObject(part) || Array.isArray(part) || JSON.isRawJSON(part)) return part
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

/**
 * Makes a freshly parsed JSON value safe to copy, store and print, in place: own `__proto__` keys go (a naive copy would
 * change its prototype), what is deeper than `levelsMax` is replaced, and of more than `valuesMax` values the rest is cut
 * off. Iterative, since JSON.parse accepts depths at which recursion fails. Returns how many values were found.
 */
export function sanitize(value: unknown, levelsMax = depthMax, valuesMax = Number.POSITIVE_INFINITY): number {
  let values = 0
  const open: [node: object, depth: number][] = isObject(value) ? [[value, 1]] : []
  for (let next = open.pop(); next; next = open.pop()) {
    const [node, depth] = next
    if (Object.hasOwn(node, '__proto__')) Reflect.deleteProperty(node, '__proto__')
    const room = Math.max(0, valuesMax - values)
    if (Array.isArray(node)) {
      values += node.length
      node.length = Math.min(node.length, room)
    } else {
      const keys = Object.keys(node)
      values += keys.length
      for (const key of keys.slice(room)) Reflect.deleteProperty(node, key)
    }
    for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
      const child: unknown = Reflect.get(node, key)
      if (!isObject(child)) continue
      if (depth < levelsMax) open.push([child, depth + 1])
      else Reflect.set(node, key, '[nested too deeply]')
    }
  }
  return values
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}

function refused(reason: string): { ok: false; reason: string } {
  return { ok: false, reason }
}

/** The place, what was expected there, and what was found: an example to report to the API's operator. */
export function firstIssue(error: z.ZodError, body: unknown): string {
  const issue = nearestIssue(error.issues)
  if (!issue) return 'not a page'
  const found = issue.path.reduce<unknown>(
    (value, key) => (isObject(value) ? Reflect.get(value, key) : undefined),
    body,
  )
  const expected = issue.message.replace(/^Invalid input: /, '').replace(/, received .*$/, '')
  return `${issue.path.join('.') || 'body'}: ${expected}, found ${foundText(found)}`
}

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** For a value that fits none of several forms: what is wrong in the form that it fits best, where the fault is deepest. */
function nearestIssue(issues: readonly z.core.$ZodIssue[]): Issue | undefined {
  const [issue] = issues
  if (issue?.code !== 'invalid_union') return issue
  const inner = issue.errors
    .map(nearestIssue)
    .filter((each) => each !== undefined)
    .sort((a, b) => b.path.length - a.path.length)[0]
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] }
}

const figure = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (typeof value === 'number' ? value : numberIn(value)), schema)
const count = figure(z.int().nonnegative())

const envelopeSchema = z.object({
  data: z.array(z.unknown()),
  meta: z.object({
    page: figure(z.int().positive()),
    perPage: figure(z.literal(perPage)),
    total: count,
    lastPage: count,
  }),
})

/** A rule is recognised by its id; routes match on the other fields as they are. */
const ruleSchema = z.looseObject({ id: z.int().positive() })

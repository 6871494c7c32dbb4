import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatCount } from '../../admin/page/words/en.ts'
import { sampleMax } from '../../delivery/records/sample.ts'
import { UserError } from '../../lib/errors.ts'
import { printable } from '../../telemetry/printable.ts'
import { progressBar } from '../output/progress.ts'
import { oddAnswerText } from './answered.ts'
import { type Daemon, NoAnswerError } from './daemon.ts'

/** The result of an order that was carried out. */
interface LongRequestResult {
  readonly handled: number
  /** How many were selected, but were no longer there when they were to be handled. */
  readonly gone: number
  readonly unknown: readonly string[]
  /** An answer was lost, so `handled` and `gone` may be too small. */
  readonly uncounted: boolean
  /** How many the order left where they are, by reason. */
  readonly stayed: NotHandled
  /** Of a dry run: `SOURCE.ID` of some, the last to fire first. */
  readonly sample: readonly string[]
  /** When the order began. */
  readonly at: string
}

interface NotHandled {
  readonly there: number
  readonly busy: number
  readonly unreadable: number
}

interface LongRequest {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  /** The field of the answer with the number that was handled. */
  readonly count: 'queued' | 'retried' | 'dropped' | 'moved'
  /** False when the order can be repeated without doing anything twice; then the command has no `--at`. */
  readonly takesAt?: boolean
}

/**
 * Carries out a whole order, portion by portion, each with a key of its own. A portion that is requested again does nothing twice,
 * and is answered as before where it had ended. So when the bridge is away for a moment, this waits for it; when it stays away,
 * the error says what was done and how to go on.
 */
export async function carryOut(daemon: Daemon, order: LongRequest): Promise<LongRequestResult> {
  const { path, body, count } = order
  const total = { handled: 0, gone: 0, looked: 0, unknown: [] as string[] }
  const stayed = { there: 0, busy: 0, unreadable: 0 }
  const sample = new Map<string, string>()
  let uncounted = false
  // The first call only counts. Its answer has the time that identifies the order, should a later answer be lost.
  let answer = checked(await daemon.post(path, { ...body, limit: 0 }))
  const { at } = answer
  const bar = progressBar(body['dryRun'] ? 'looking' : at)
  try {
    for (let standstills = 0; answer.cursor !== null; ) {
      bar.show(total.looked, answer.total)
      const { cursor } = answer
      const sent = await retryWhileAway(daemon, path, { ...body, cursor })
      answer = checked(sent.answer)
      uncounted ||= sent.uncounted
      standstills = answer.looked === 0 && answer.cursor === cursor ? standstills + 1 : 0
      if (standstills === standstillsMax) throw new UserError('The bridge does not get on with it.')
      total.handled += answer[count] ?? 0
      total.gone += answer.gone
      total.looked += answer.looked
      for (const why of ['there', 'busy', 'unreadable'] as const) stayed[why] += answer[why] ?? 0
      total.unknown.push(...(answer.unknown ?? []))
      for (const { source, id, firedAt } of answer.sample ?? []) sample.set(`${source}.${id}`, firedAt)
    }
  } catch (thrown) {
    if (!(thrown instanceof UserError)) throw thrown
    if (body['dryRun']) throw new UserError(`${thrown.message} Nothing was changed.`, { cause: thrown })
    const done = `${formatCount(total.handled)} were ${count} before that`
    const how = order.takesAt === false ? '' : ` with ${printable(goOn(body, at))}`
    throw new UserError(`${thrown.message} ${done}; the same command${how} goes on.`, { cause: thrown })
  } finally {
    bar.end()
  }
  const { handled, gone, unknown } = total
  // Who named an alert wanted something of it: a script learns by the exit code that nothing came of it.
  if (unknown.length > 0) process.exitCode = 1
  const newest = [...sample].sort(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0)).map(([name]) => name)
  return { handled, gone, unknown, uncounted, stayed, sample: newest.slice(0, sampleMax), at }
}

/** A process that stood still for as long as a portion may take has looked at nothing in it. */
const standstillsMax = 5

/** What says that it is a bridge may be none, or of another version: without a cursor this would ask for ever. */
function checked(answer: unknown): Answer {
  const { cursor, looked, gone, total, at } = { ...(answer as Partial<Answer> | null) }
  const isPortion = [looked, gone, total].every(Number.isFinite) && typeof at === 'string'
  if (isPortion && (cursor === null || typeof cursor === 'string')) return answer as Answer
  throw new UserError(oddAnswerText())
}

/** `131 would be put back, such as main.1, main.2, main.3; nothing was changed`. */
export function describeDryRun(
  {
    handled,
    sample = [],
    unknown = [],
    uncounted = false,
  }: Pick<LongRequestResult, 'handled'> & Partial<LongRequestResult>,
  word: string,
): string {
  const such = sample.length === 0 ? '' : `, such as ${sample.join(', ')}`
  const least = uncounted ? 'at least ' : ''
  return printable(
    `${least}${formatCount(handled)} would be ${word}${such}${unknownText(unknown)}; nothing was changed`,
  )
}

function unknownText(unknown: readonly string[]): string {
  return unknown.length === 0 ? '' : `; not known (any more): ${unknown.join(', ')}`
}

/** `12,345 queued, 3 had gone meanwhile; not known (any more): main.4711`. */
export function describeDone(result: LongRequestResult, word: string): string {
  const { handled, gone, unknown, uncounted } = result
  const least = uncounted ? 'at least ' : ''
  const went = gone === 0 ? '' : `, ${formatCount(gone)} had gone meanwhile`
  return printable(`${least}${formatCount(handled)} ${word}${went}${unknownText(unknown)}`)
}

/** The options to go on with, as absolute times: `--since 2h` would mean another span later. */
function goOn({ since, until }: LongRequest['body'], at: string): string {
  return [
    ...(since === undefined ? [] : [`--since ${since}`]),
    ...(until === undefined ? [] : [`--until ${until}`]),
    `--at ${at}`,
  ].join(' ')
}

interface Answer extends Partial<NotHandled> {
  readonly moved?: number
  readonly queued?: number
  readonly retried?: number
  readonly dropped?: number
  readonly gone: number
  readonly looked: number
  readonly total: number
  readonly unknown?: readonly string[]
  readonly sample?: readonly { readonly source: string; readonly id: number; readonly firedAt: string }[]
  readonly at: string
  readonly cursor: string | null
}

const askEveryMs = 500
const patienceMs = 35_000

/** `uncounted`: a part of it was done by a request whose answer nobody has. */
async function retryWhileAway(
  daemon: Daemon,
  path: string,
  portion: Readonly<Record<string, unknown>>,
): Promise<{ answer: unknown; uncounted: boolean }> {
  const endMs = performance.now() + patienceMs
  const key = randomUUID()
  for (let isLost = false; ; isLost = true) {
    try {
      const { answer, isRepeated } = await daemon.postOnce(path, portion, key)
      return { answer, uncounted: isLost && !isRepeated }
    } catch (thrown) {
      if (!(thrown instanceof NoAnswerError) || performance.now() > endMs) throw thrown
      await sleep(askEveryMs)
    }
  }
}

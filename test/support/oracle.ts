import type { ApiDelivery } from '../../src/sandbox/sandbox.ts'
import type { SmtpReceiver, SmtpReply } from './smtp-receiver.ts'
import type { ReceiverAnswer, WebhookReceiver } from './webhook-receiver.ts'

/**
 * The judge of every fault test: what the feed showed against what each sink took. Alerts are known by a mark in their
 * headline, the one thing that a webhook, a Slack message and a mail have in common.
 */
export interface Fires {
  fire(fields?: Partial<ApiDelivery>): ApiDelivery
}

export interface Shown {
  /** Mark → the id that the feed gave it. */
  readonly ids: ReadonlyMap<string, number>
  fire(count?: number): void
}

export function showing(feed: Fires): Shown {
  const ids = new Map<string, number>()
  return {
    ids,
    fire(count = 1) {
      for (let left = count; left > 0; left -= 1) {
        const mark = `A${String(ids.size + 1).padStart(5, '0')}`
        ids.set(mark, feed.fire({ headline: `${mark} fired` }).id)
      }
    },
  }
}

/** What one sink took, in order: a mark each time it said so. Answers that are no acknowledgement do not count. */
export interface SinkLog {
  readonly name: string
  readonly taken: readonly string[]
  /** Requests that came, whatever was answered. */
  attempts(): number
  /** Webhook: mark → every `webhook-id` that it came with. */
  readonly names: ReadonlyMap<string, ReadonlySet<string>>
}

const markPattern = /A\d{5}/
/** What a sink takes for an acknowledgement, as soon as it has the status: the rest of the answer is nobody's business. */
const acknowledging = new Set(['answer', 'drip', 'flood'])

/** `misbehave` may answer in the sink's place; what it leaves undefined is acknowledged by `ok`. */
export function logOf(
  name: string,
  receiver: WebhookReceiver,
  ok: ReceiverAnswer,
  misbehave: (mark: string, attempt: number) => ReceiverAnswer | undefined = () => undefined,
): SinkLog {
  const taken: string[] = []
  const names = new Map<string, Set<string>>()
  let attempts = 0
  receiver.answerWith((request) => {
    attempts += 1
    const mark = markPattern.exec(request.body)?.[0] ?? `unmarked ${attempts}`
    const name = request.headers['webhook-id']
    if (name !== undefined) names.set(mark, (names.get(mark) ?? new Set<string>()).add(String(name)))
    const answer = misbehave(mark, attempts) ?? ok
    if (isAcknowledgement(answer)) taken.push(mark)
    return answer
  })
  return { name, taken, attempts: () => attempts, names }
}

export function mailLog(
  name: string,
  receiver: SmtpReceiver,
  misbehave: (attempt: number, raw: string) => SmtpReply = () => undefined,
): SinkLog {
  let attempts = 0
  receiver.script({
    data(raw) {
      attempts += 1
      return misbehave(attempts, raw)
    },
  })
  return {
    name,
    get taken() {
      return receiver.mails.map(
        ({ raw }) => markPattern.exec(/^Subject: .*/m.exec(raw)?.[0] ?? '')?.[0] ?? raw,
      )
    },
    attempts: () => attempts,
    names: new Map(),
  }
}

/** What is wrong with what a sink took; a test wants all four to be empty. */
export interface Verdict {
  /** Shown, and neither taken nor given up with a reason. */
  readonly missing: readonly string[]
  /** Taken, and never shown. */
  readonly unknown: readonly string[]
  /** Taken more often than the sends that were cut off explain, with how often. */
  readonly doubled: readonly string[]
  /** Webhook: came with an id that is not its own. */
  readonly misnamed: readonly string[]
}

export const clean: Verdict = { missing: [], unknown: [], doubled: [], misnamed: [] }

export function judge(
  shown: Shown,
  log: SinkLog,
  options: {
    readonly dead?: ReadonlySet<string>
    /** Mark → how often a send of it was on its way when something was killed. */
    readonly cutOff?: ReadonlyMap<string, number>
  } = {},
): Verdict {
  const times = new Map<string, number>()
  for (const mark of log.taken) times.set(mark, (times.get(mark) ?? 0) + 1)
  const { dead = new Set(), cutOff = new Map<string, number>() } = options
  return {
    missing: [...shown.ids.keys()].filter((mark) => !times.has(mark) && !dead.has(mark)),
    unknown: [...times.keys()].filter((mark) => !shown.ids.has(mark)),
    doubled: [...times].flatMap(([mark, count]) =>
      count > 1 + (cutOff.get(mark) ?? 0) ? [`${mark} x${count}`] : [],
    ),
    misnamed: [...log.names].flatMap(([mark, names]) =>
      names.size === 1 && names.has(`main.${shown.ids.get(mark)}`) ? [] : [mark],
    ),
  }
}

/** How many alerts a sink took more than once, in all. */
export function repeats(log: SinkLog): number {
  return log.taken.length - new Set(log.taken).size
}

/** Every `webhook-id` that came in more than one request, whatever was answered. */
export function sentAgain({ requests }: Pick<WebhookReceiver, 'requests'>): string[] {
  const times = new Map<string, number>()
  for (const { headers } of requests) {
    const id = String(headers['webhook-id'])
    times.set(id, (times.get(id) ?? 0) + 1)
  }
  return [...times].flatMap(([id, count]) => (count > 1 ? [id] : []))
}

/** Whether every alert has arrived; for waiting. */
export function hasAll(shown: Shown, log: SinkLog): boolean {
  return new Set(log.taken).size >= shown.ids.size
}

function isAcknowledgement(answer: ReceiverAnswer): boolean {
  const { kind = 'answer' } = answer
  return acknowledging.has(kind) && 'status' in answer && answer.status >= 200 && answer.status < 300
}

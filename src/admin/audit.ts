import type { FastifyRequest } from 'fastify'
import { fieldsOf } from '../alert/json/json.ts'
import type { AuditRow } from './views/audit-view.ts'

/** What the list calls whoever has the admin token, since there is one token only. */
const tokenName = 'http.adminToken'
/** Of an order for more alerts, only the count is kept. */
const idsMax = 50
const textCharsMax = 500

/** What is recorded of an action that was carried out; undefined where it only counted or showed something. Pure. */
export function auditRowOf(
  action: string,
  { params, body, ip }: Pick<FastifyRequest, 'params' | 'body' | 'ip'>,
  answer: unknown,
  nowMs: number,
): AuditRow | undefined {
  const [given, place, result] = [fieldsOf(body), fieldsOf(params), fieldsOf(answer)]
  if (given['limit'] === 0 || given['dryRun'] === true) return undefined
  const ids = Array.isArray(given['ids']) ? given['ids'].map(String) : []
  const numbers = ['queued', 'retried', 'dropped', 'moved'].map((name) => result[name])
  const count = numbers.find((each) => typeof each === 'number')
  const isOrder = typeof result['at'] === 'string' && 'cursor' in result
  return {
    at: new Date(nowMs).toISOString(),
    action,
    subject: cutText(subjectOf(place, given, result)),
    ids: ids.length > idsMax ? [] : ids,
    count: typeof count === 'number' ? count : null,
    comment: isText(given['comment']) ? cutText(given['comment']) : '',
    by: tokenName,
    from: ip,
    order: isOrder ? String(result['at']) : null,
  }
}

/** What it was for, and until when: a row that says only what was done and how often cannot be traced to an order. */
function subjectOf(place: Fields, given: Fields, result: Fields): string {
  const made = fieldsOf(result['data'])
  const name = [place['name'], made['id'], place['id'], given['sink'], given['source']].find(isText)
  const until = [result['until'], made['endsAt'], given['until']].find(isText)
  const words = [
    name,
    isText(given['to']) && `to ${given['to']}`,
    isText(given['since']) && `since ${given['since']}`,
    until && `until ${until}`,
    given['all'] === true && 'all',
    given['match'] !== undefined && JSON.stringify(given['match']),
  ]
  const parts = [
    words.filter(isText).join(' '),
    isText(given['reason']) && `reason ${given['reason']}`,
    given['retry'] === true && 'dead letters are sent again',
  ]
  return parts.filter((part) => isText(part) && part !== '').join(', ')
}

type Fields = Readonly<Record<string, unknown>>

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function cutText(text: string): string {
  return text.length > textCharsMax ? `${text.slice(0, textCharsMax)}…` : text
}

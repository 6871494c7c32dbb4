import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../lib/clock.ts'
import type { Account } from '../account.ts'
import { answerData } from '../data/answer.ts'
import type { FaultQueue, FeedChange, InjectedFault, MatchedFaults } from '../faults/faults.ts'
import { perPage } from '../feed.ts'
import { makeBadRows } from '../rows.ts'
import { type Body, bodyReply, refusalReply, spoiltReply, toPage } from './answers.ts'
import {
  type CallDecision,
  decideCall,
  invalid,
  notHeld,
  pageNumber,
  type SandboxToken,
} from './decide-call.ts'
import { readBody } from './http.ts'
import type { SandboxRequest } from './surface.ts'
import { transmit } from './transmit.ts'

/** What answering a call needs of the sandbox: its present account, tokens and faults. */
interface SandboxContext {
  readonly clock: Clock
  readonly hasPlan: boolean
  readonly pathPrefix: string
  /** Of the market's figures. */
  readonly seed: number
  readonly faults: FaultQueue
  /** Aborts when the sandbox stops. */
  readonly signal: AbortSignal
  account(): Account
  tokens(): readonly SandboxToken[]
  fireMany(count: number): void
  record(entry: Entry): void
}

export type Entry = { -readonly [K in keyof SandboxRequest]: SandboxRequest[K] }

/** Answers one call. Never rejects: where an answer cannot be sent, its connection is closed. */
export async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  context: SandboxContext,
): Promise<void> {
  try {
    await answer(request, response, context)
  } catch {
    response.destroy()
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  context: SandboxContext,
): Promise<void> {
  const { clock, hasPlan, signal } = context
  const { path, query } = split(request.url ?? '/')
  const method = request.method ?? 'GET'
  const page = query.has('page') ? (pageNumber(query) ?? null) : null
  const call = {
    method,
    pathname: withoutPrefix(path, context.pathPrefix),
    query,
    authorization: request.headers.authorization,
    body: method === 'POST' ? readJson(await readBody(request)) : undefined,
  }
  const account = context.account()
  const decision = decideCall(
    call,
    { tokens: context.tokens(), hasPlan, limits: account.limits },
    clock.now(),
  )
  const met = decision.ok ? context.faults.take(decision) : {}
  const faults = Object.values(met).map(({ kind }) => kind)
  const entry: Entry = { atMs: clock.now(), method, path, page, status: null, units: decision.units, faults }
  context.record(entry)
  if (met.before) change(met.before, context)
  if (met.pace?.kind === 'slow') await clock.sleep(met.pace.delayMs, signal)
  const reply = decision.ok ? makeReply(decision, met, context) : refusalReply(decision.refusal)
  if (met.transfer?.kind !== 'hang' || met.transfer.headersSent) entry.status = reply.status
  await transmit(response, reply, met.transfer, clock, signal)
}

function makeReply(asked: Asked, met: MatchedFaults, context: SandboxContext) {
  const body = bodyOf(asked, context)
  if ('ok' in body) return refusalReply(body.refusal)
  return met.answer ? spoiltReply(met.answer, body) : bodyReply(body)
}

type Asked = Extract<CallDecision, { ok: true }>

function bodyOf(
  { path, page, ...asked }: Asked,
  context: SandboxContext,
): Body | Extract<CallDecision, { ok: false }> {
  if (path === '/api/v1/alerts') return rulesPage(page, context)
  if (path === '/api/v1/alerts/deliveries') return deliveriesPage(page, context)
  const scene = { seed: context.seed, nowMs: context.clock.now() }
  const answer = answerData({ ...asked, path, scene })
  switch (answer.kind) {
    case 'rows':
      return pageOf(answer.rows, page)
    case 'record':
      return { data: answer.data, ...(answer.meta === undefined ? {} : { meta: answer.meta }) }
    case 'notFound':
      return notHeld(asked.units)
    case 'invalid':
      return invalid(asked.units, answer.fields)
    default:
      return answer satisfies never
  }
}

function deliveriesPage(page: number, context: SandboxContext) {
  const { feed } = context.account()
  return toPage(feed.page(page), page, feed.total)
}

function rulesPage(page: number, context: SandboxContext) {
  return pageOf(context.account().rules(context.clock.now()), page)
}

function pageOf(rows: readonly unknown[], page: number) {
  return toPage(rows.slice((page - 1) * perPage, page * perPage), page, rows.length)
}

function change(fault: InjectedFault, context: SandboxContext): void {
  const { feed, make } = context.account()
  const newRow = () => make(context.clock.now())
  if (fault.kind === 'badRows') {
    const rows = fault.rows ?? makeBadRows(newRow)
    for (const [index, row] of rows.entries()) feed.insert(row, index * 2)
  }
  if (fault.kind !== 'between') return
  for (const each of fault.changes) apply(each)

  function apply(each: FeedChange): void {
    if ('fire' in each) context.fireMany(each.fire)
    else if ('insert' in each) feed.insert(each.insert, each.at)
    else if ('insertAlerts' in each)
      for (let n = 0; n < each.insertAlerts; n += 1) feed.insert(newRow(), each.at)
    else if ('remove' in each) feed.remove(each.remove)
    else if ('removeAt' in each) feed.removeAt(each.removeAt)
    else each.run()
  }
}

function split(url: string): { path: string; query: URLSearchParams } {
  const [path = '/', ...rest] = url.split('?')
  return { path, query: new URLSearchParams(rest.join('?')) }
}

function withoutPrefix(path: string, prefix: string): string {
  return path.startsWith(prefix) ? path.slice(prefix.length) : ''
}

/** undefined where it is no JSON, or too long. No body at all is an empty object. */
function readJson(body: string | undefined): { readonly json: unknown } | undefined {
  try {
    return body === undefined ? undefined : { json: JSON.parse(body || '{}') }
  } catch {
    return undefined
  }
}

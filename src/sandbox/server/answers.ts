import { given } from '../../lib/given.ts'
import type { InjectedFault, Shape } from '../faults/faults.ts'
import { perPage } from '../feed.ts'

/** The bodies of answers: pages, refusals, and how a fault changes them. Pure. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** A body that is too long for memory: the given number of spaces, sent as a stream. */
  readonly blanks?: { readonly bytes: number; readonly gzip: boolean }
}

/** A page, or a record, whose `meta` may be anything. */
export interface Body {
  readonly data: unknown
  readonly meta?: Readonly<Record<string, unknown>>
}

export interface Refusal {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly detail?: Readonly<Record<string, unknown>>
  readonly retryAfter?: string
}

export function toPage(data: readonly unknown[], page: number, total: number): Body {
  return { data, meta: { page, perPage, total, lastPage: Math.max(1, Math.ceil(total / perPage)) } }
}

export function bodyReply(body: Body): Reply {
  return { status: 200, headers: jsonHeaders, body: JSON.stringify(body) }
}

export function refusalReply({ status, code, message, detail, retryAfter }: Refusal): Reply {
  return {
    status,
    headers: { ...jsonHeaders, ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) },
    body: JSON.stringify({ error: { code, message, ...(detail === undefined ? {} : { detail }) } }),
  }
}

/** The answer that a fault of the answer stage sends instead of `page`. */
export function spoiltReply(fault: InjectedFault, page: Body): Reply {
  switch (fault.kind) {
    case 'status':
      return statusReply(fault)
    case 'body': {
      const encoding = fault.contentEncoding
      const headers = {
        'content-type': fault.contentType ?? 'application/json',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      }
      return { status: 200, headers, body: fault.text }
    }
    case 'malformed':
      return { status: 200, headers: jsonHeaders, body: JSON.stringify(page).slice(0, -20) }
    case 'html':
      return {
        status: 200,
        headers: { 'content-type': 'text/html' },
        body: '<!doctype html><h1>Sign in</h1>',
      }
    case 'deep':
      return {
        status: 200,
        headers: jsonHeaders,
        body: `{"data":${'['.repeat(fault.depth)}${']'.repeat(fault.depth)},"meta":${JSON.stringify(page.meta ?? {})}}`,
      }
    case 'huge':
      return { status: 200, headers: jsonHeaders, body: '', blanks: { bytes: fault.bytes, gzip: false } }
    case 'bomb': {
      const headers = { ...jsonHeaders, 'content-encoding': 'gzip' }
      return { status: 200, headers, body: '', blanks: { bytes: fault.bytes, gzip: true } }
    }
    case 'shape':
      return { status: 200, headers: jsonHeaders, body: JSON.stringify(reshape(page, fault.shape)) }
    default:
      return bodyReply(page)
  }
}

const jsonHeaders = { 'content-type': 'application/json', 'cache-control': 'no-store' } as const

const documentedCodes: Readonly<Record<number, string>> = {
  401: 'unauthenticated',
  403: 'scope_required',
  404: 'not_found',
  422: 'invalid_request',
  429: 'rate_limited',
  500: 'server_error',
}

function statusReply(fault: Extract<InjectedFault, { kind: 'status' }>): Reply {
  const { status, code = documentedCodes[status] ?? 'server_error', message = 'Declared fault.' } = fault
  const { detail, retryAfter, location } = fault
  const reply = refusalReply({ status, code, message, ...given({ detail, retryAfter }) })
  const headers = location === undefined ? reply.headers : { ...reply.headers, location }
  return { status, headers, body: fault.body ?? reply.body }
}

function reshape(page: Body, shape: Shape): unknown {
  const { data: whole, meta = {} } = page
  const data: readonly unknown[] = Array.isArray(whole) ? whole : [whole]
  const [first = null] = data
  const figure = (name: string) => Number(meta[name] ?? 0)
  switch (shape) {
    case 'noMeta':
      return { data }
    case 'noData':
      return { meta }
    case 'dataObject':
      return { data: Object.fromEntries(data.entries()), meta }
    case 'stringMeta':
      return {
        data,
        meta: Object.fromEntries(Object.entries(meta).map(([key, value]) => [key, String(value)])),
      }
    case 'perPage50':
      return {
        data: data.slice(0, 50),
        meta: { ...meta, perPage: 50, lastPage: Math.ceil(figure('total') / 50) },
      }
    case 'lastPage0':
      return { data, meta: { ...meta, lastPage: 0 } }
    case 'wrongPage':
      return { data, meta: { ...meta, page: figure('page') + 1 } }
    case 'extraRows':
      return { data: [...data, ...Array<unknown>(Math.max(0, perPage + 1 - data.length)).fill(first)], meta }
    case 'emptyData':
      return { data: [], meta }
  }
}

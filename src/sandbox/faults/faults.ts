import type { EndpointName } from '../../feed/endpoints.ts'

/**
 * Faults that a developer declares and the sandbox then makes. Each belongs to a stage of an answer; faults of different
 * stages combine in one answer, and of one stage the first that matches is used first.
 */
export type InjectedFault = FaultEffect & {
  /** For how many answers; 0: until cleared. Default 1. */
  readonly times?: number
  /** Matching requests that it lets pass first. Default 0. */
  readonly after?: number
  /** Only requests for this page. */
  readonly page?: number
  readonly endpoint?: EndpointName
}

type FaultEffect =
  | { readonly kind: 'between'; readonly changes: readonly FeedChange[] }
  | { readonly kind: 'badRows'; readonly rows?: readonly unknown[] }
  | { readonly kind: 'slow'; readonly delayMs: number }
  | {
      readonly kind: 'status'
      readonly status: number
      /** The envelope's code; by default the documented one of this status. */
      readonly code?: string
      readonly message?: string
      readonly detail?: Readonly<Record<string, unknown>>
      /** The Retry-After header, word for word. */
      readonly retryAfter?: string
      readonly location?: string
      /** Instead of the error envelope, word for word. */
      readonly body?: string
    }
  | {
      readonly kind: 'body'
      readonly text: string
      readonly contentType?: string
      readonly contentEncoding?: string
    }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'html' }
  | { readonly kind: 'deep'; readonly depth: number }
  | { readonly kind: 'huge'; readonly bytes: number }
  | { readonly kind: 'bomb'; readonly bytes: number }
  | { readonly kind: 'shape'; readonly shape: Shape }
  | { readonly kind: 'hang'; readonly headersSent?: boolean }
  | { readonly kind: 'drip'; readonly intervalMs: number; readonly bytes?: number }
  | { readonly kind: 'cut'; readonly bytes?: number }
  | { readonly kind: 'gzip' }

/** What happens to the feed just before a request is answered. Places count from 0, the newest. */
export type FeedChange =
  | { readonly fire: number }
  | { readonly insert: unknown; readonly at: number }
  | { readonly insertAlerts: number; readonly at: number }
  | { readonly remove: number }
  | { readonly removeAt: number }
  /** Only in code, not over the control port. */
  | { readonly run: () => void }

export const shapes = [
  'noMeta',
  'noData',
  'dataObject',
  'stringMeta',
  'perPage50',
  'lastPage0',
  'wrongPage',
  'extraRows',
  'emptyData',
] as const
export type Shape = (typeof shapes)[number]

type FaultStage = 'before' | 'pace' | 'answer' | 'transfer'

interface FaultKind {
  readonly stage: FaultStage
  readonly says: string
  /** The fields of this kind; a question mark ends the name of an optional one. */
  readonly fields: Readonly<Record<string, FieldType>>
}
export type FieldType = 'number' | 'string' | 'boolean' | 'object' | 'list'

export const faultKinds: Readonly<Record<InjectedFault['kind'], FaultKind>> = {
  between: {
    stage: 'before',
    says: 'changes the feed first: a list of {fire: n} {insert: row, at} {insertAlerts: n, at} {remove: id} {removeAt}',
    fields: { changes: 'list' },
  },
  badRows: {
    stage: 'before',
    says: 'puts bad rows among the newest; they stay',
    fields: { 'rows?': 'list' },
  },
  slow: { stage: 'pace', says: 'waits before the headers', fields: { delayMs: 'number' } },
  status: {
    stage: 'answer',
    says: 'answers with this status; retryAfter is the header, detail.retryAfter makes a 429 a budget refusal',
    fields: {
      status: 'number',
      'code?': 'string',
      'message?': 'string',
      'detail?': 'object',
      'retryAfter?': 'string',
      'location?': 'string',
      'body?': 'string',
    },
  },
  body: {
    stage: 'answer',
    says: 'answers 200 with this text',
    fields: { text: 'string', 'contentType?': 'string', 'contentEncoding?': 'string' },
  },
  malformed: { stage: 'answer', says: 'answers 200 with half a JSON text', fields: {} },
  html: { stage: 'answer', says: "answers 200 with a proxy's HTML page", fields: {} },
  deep: { stage: 'answer', says: 'answers 200 with lists nested this deep', fields: { depth: 'number' } },
  huge: { stage: 'answer', says: 'answers 200 with a body of this length', fields: { bytes: 'number' } },
  bomb: {
    stage: 'answer',
    says: 'answers 200 with gzip that unpacks to this length',
    fields: { bytes: 'number' },
  },
  shape: {
    stage: 'answer',
    says: `answers 200 in a wrong shape: ${shapes.join(', ')}`,
    fields: { shape: 'string' },
  },
  hang: { stage: 'transfer', says: 'never ends its answer', fields: { 'headersSent?': 'boolean' } },
  drip: {
    stage: 'transfer',
    says: 'sends a few bytes at a time',
    fields: { intervalMs: 'number', 'bytes?': 'number' },
  },
  cut: { stage: 'transfer', says: 'breaks the connection in the body', fields: { 'bytes?': 'number' } },
  gzip: { stage: 'transfer', says: 'sends the answer gzip-encoded', fields: {} },
}

export interface FaultQueue {
  add(fault: InjectedFault): void
  clear(): void
  list(): readonly InjectedFault[]
  /** Returns the faults for this request, at most one of each stage, and counts them as used. */
  take(request: { readonly endpoint: string; readonly page: number | null }): MatchedFaults
}
export type MatchedFaults = Partial<Record<FaultStage, InjectedFault>>

export function createFaultQueue(): FaultQueue {
  let queue: { fault: InjectedFault; passing: number; left: number }[] = []
  return {
    add(fault) {
      const { after = 0, times = 1 } = fault
      queue.push({ fault, passing: after, left: times === 0 ? Number.POSITIVE_INFINITY : times })
    },
    clear() {
      queue = []
    },
    list: () => queue.map(({ fault }) => fault),
    take({ endpoint, page }) {
      const met: MatchedFaults = {}
      for (const entry of queue) {
        const { fault } = entry
        if (fault.endpoint !== undefined && fault.endpoint !== endpoint) continue
        if (fault.page !== undefined && fault.page !== page) continue
        if (entry.passing > 0) {
          entry.passing -= 1
          continue
        }
        const { stage } = faultKinds[fault.kind]
        if (met[stage]) continue
        met[stage] = fault
        entry.left -= 1
      }
      queue = queue.filter(({ left }) => left > 0)
      return met
    },
  }
}

/**
 * What became of one attempt, and what follows from it. Sinks say what happened (`Happened`); `outcomeOf` is the only
 * place that decides whether that is delivered, to be tried again, or final. The reasons are closed unions: they are
 * labels of metrics and words in the status page.
 */
export type Outcome =
  | { readonly kind: 'delivered'; readonly answer: Answer }
  | {
      readonly kind: 'retry'
      readonly reason: RetryReason
      /** What the remote asked for (`Retry-After`), in milliseconds. */
      readonly afterMs?: number
      /** The sink as a whole is at fault (down, refusing credentials), not this alert: counts for the breaker. */
      readonly sinkFault: boolean
      readonly answer: Answer
    }
  | {
      readonly kind: 'dead'
      readonly reason: DeadReason
      readonly sinkFault: boolean
      readonly answer: Answer
    }

/** What a person is told of the remote's answer; free of secrets, at most `answerTextMax` characters. */
export interface Answer {
  readonly status?: number
  readonly text: string
}

export type RetryReason =
  | 'rate_limited'
  | 'server_error'
  | 'timeout'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'connection_lost'
  | 'bad_answer'
  | 'credentials'
  | 'aborted'

export type DeadReason =
  | 'gone'
  | 'rejected'
  | 'redirect'
  | 'blocked_address'
  | 'credentials'
  | 'unrenderable'
  | 'expired'
  | 'attempts_exhausted'

export const answerTextMax = 300

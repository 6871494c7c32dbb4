/** The walk's memory of one source in Redis. */
export interface WalkState {
  readonly source: string
}

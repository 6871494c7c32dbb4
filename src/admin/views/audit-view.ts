/** What an operator did, as the API shows it. */
export interface AuditRow {
  readonly at: string
  readonly action: string
  /** What it was for: the sink, the source or the silence, and of an order its span, its reason or where it moved to. */
  readonly subject: string
  /** `SOURCE.ID` of alerts, where there were few. */
  readonly ids: readonly string[]
  /** How many alerts were handled. */
  readonly count: number | null
  readonly comment: string
  /** Whose token it was, and the address that the request came from. */
  readonly by: string
  readonly from: string
  /** The time (`at` of its answers) that identifies an order in portions. */
  readonly order: string | null
}

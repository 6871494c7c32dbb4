/** RFC 3339 ends with the year 9999, and no receiver takes a later one. */
const msMax = 253_402_300_799_999

/** When an alert fired, for receivers that check the form of times; undefined where that is unknown or has no such form. */
export function timestampOf({ firedAtMs: ms }: { readonly firedAtMs: number | null }): string | undefined {
  return ms === null || ms < 0 || ms > msMax ? undefined : new Date(ms).toISOString()
}

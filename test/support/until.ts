import { ownTime } from './own-time.ts'

/** Resolves when `condition` holds; rejects with `what` after the limit, in which time without a processor does not count. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const nowMs = ownTime()
  const deadlineMs = nowMs() + limitMs
  while (!(await condition())) {
    if (nowMs() > deadlineMs) throw new Error(`not within ${limitMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

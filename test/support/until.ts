/** Resolves when `condition` holds; rejects with `what` after the limit. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 10_000,
): Promise<void> {
  const deadlineMs = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${limitMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { onTestFinished as ofTheTestThatBegan, type TestContext } from 'vitest'

/**
 * Vitest's own `onTestFinished` belongs to the test that began last, which is the wrong one among tests that run side by
 * side. What is written with `sideBySide` cleans up after itself alone.
 */
const own = new AsyncLocalStorage<TestContext['onTestFinished']>()

export const onTestFinished: TestContext['onTestFinished'] = (handler, timeoutMs) =>
  (own.getStore() ?? ofTheTestThatBegan)(handler, timeoutMs)

/** The body of an `it.concurrent`. */
export function sideBySide(body: () => Promise<void>): (context: TestContext) => Promise<void> {
  return (context) => own.run(context.onTestFinished, body)
}

/**
 * Resolves to the first of these signals. The listeners stay until the process has ended: otherwise a second signal while
 * it stops (an impatient operator; npm and the terminal, which both pass on the same Ctrl-C) would kill it.
 */
export function untilSignal(
  signals: readonly NodeJS.Signals[],
  again: (signal: NodeJS.Signals) => void = () => {},
): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let asked = false
  for (const signal of signals)
    process.on(signal, () => {
      if (asked) again(signal)
      asked = true
      resolve(signal)
    })
  return promise
}

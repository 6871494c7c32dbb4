/**
 * A controller that aborts as `signal` does, until `off`. AbortSignal.any does the same and leaves lists of weak references
 * to the garbage collector, at each send.
 */
export function abortAlong(signal: AbortSignal): { readonly controller: AbortController; off(): void } {
  const controller = new AbortController()
  const onAbort = () => controller.abort(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort)
  return { controller, off: () => signal.removeEventListener('abort', onAbort) }
}

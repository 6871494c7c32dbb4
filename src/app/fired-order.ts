import { fillOrder } from '../delivery/records/fill-order.ts'
import { forgetGone } from '../delivery/records/search.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import type { Logger } from '../telemetry/log.ts'
import type { ActiveConfig } from './active-config.ts'
import { readerOptions } from './operator-api/delivery-search.ts'

interface Options {
  readonly active: () => ActiveConfig
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Logger
}

/** Keeps the order of firing as large as what is kept: adds what it lacks at the start, and removes regularly what is gone. */
export async function keepFiredOrder({ active, clock, log }: Options, signal: AbortSignal): Promise<void> {
  const attempt = (work: Promise<void>) =>
    work.catch((thrown: unknown) => log.debug({ err: toError(thrown) }, 'the order of alerts not kept'))
  await attempt(fillOrder(active().fired, readerOptions(active()), signal))
  while (!signal.aborted) {
    await attempt(forgetGone(active().fired, readerOptions(active())))
    await clock.sleep(forgetEveryMs, signal).catch(() => {})
  }
}

const forgetEveryMs = 3_600_000

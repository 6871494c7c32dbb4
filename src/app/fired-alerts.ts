import { fillFiredAlerts } from '../delivery/records/fill-fired-alerts.ts'
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

/**
 * Makes the fired alerts those that have a record: adds those that are missing at the start, and each hour removes those whose
 * record is gone.
 */
export async function keepFiredAlerts({ active, clock, log }: Options, signal: AbortSignal): Promise<void> {
  const attempt = (work: Promise<void>) =>
    work.catch((thrown: unknown) =>
      log.debug({ err: toError(thrown) }, 'the fired alerts in Redis could not be brought up to date'),
    )
  await attempt(fillFiredAlerts(active().fired, readerOptions(active()), signal))
  while (!signal.aborted) {
    await attempt(forgetGone(active().fired, readerOptions(active())))
    await clock.sleep(forgetEveryMs, signal).catch(() => {})
  }
}

const forgetEveryMs = 3_600_000

import { redisErrorText } from '../store/connection/redis-errors.ts'
import type { Logger } from '../telemetry/log.ts'

/** Does what helps, and what deliveries do not depend on: without Redis it is logged what is so `otherwise`. Never rejects. */
export type BestEffort = (otherwise: string, work: () => Promise<unknown>) => Promise<void>

export function bestEffortFor(sink: string, log: Logger): BestEffort {
  return async (otherwise, work) => {
    try {
      await work()
    } catch (error) {
      log.debug({ sink, reason: redisErrorText(error) }, otherwise)
    }
  }
}

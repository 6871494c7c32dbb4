import type { Lease } from '../../store/source/lease.ts'
import type { PollerStatus, SourceStatusStore } from '../../store/source/source-status.ts'

/**
 * The status of a source: that of this process while it is sure that no other polls, else what the one that polls stored last. A
 * process that was frozen beyond its lease knows only what was so before: as news it would be false. While Redis is away its own
 * status is all there is.
 */
export async function currentStatus(
  own: PollerStatus,
  lease: Pick<Lease, 'held'> | undefined,
  load: SourceStatusStore['load'],
): Promise<PollerStatus> {
  // A Redis that takes nothing may still show what was stored before; then this process has no lease and cannot get one.
  if (own.state === 'redis_down') return own
  if (lease?.held && own.state !== 'standby' && own.state !== 'starting') return own
  return (await load().catch(() => undefined)) ?? own
}

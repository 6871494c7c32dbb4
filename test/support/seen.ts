import type { RedisClient } from '../../src/store/connection/redis.ts'

const dayMs = 86_400_000

/** Makes these rows of the memory last shown at these instants (ms); others stay as they are. */
export async function dateSeen(
  redis: RedisClient,
  { seen, seenDays }: { readonly seen: string; readonly seenDays: string },
  shownAtMs: Readonly<Record<string, number>>,
): Promise<void> {
  const days = Object.entries(shownAtMs).flatMap(([key, ms]) => [key, String(Math.floor(ms / dayMs))])
  if (days.length > 0) await redis.hset(seen, ...days)
  const rows = new Map<string, number>()
  for (const day of await redis.hvals(seen)) rows.set(day, (rows.get(day) ?? 0) + 1)
  await redis.del(seenDays)
  if (rows.size > 0) await redis.hset(seenDays, ...[...rows].flat())
}

import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { freshPrefix, type RedisServer } from './redis.ts'
import { until } from './until.ts'

/** Where the append-only file ends now, at the border of a command. */
export async function endOfFile(redis: RedisServer): Promise<{ path: string; bytes: number }> {
  const folder = join(redis.dir, 'appendonlydir')
  const name = (await readdir(folder)).find((each) => each.endsWith('.incr.aof'))
  if (name === undefined) throw new Error('there is no append-only file')
  await redis.client().set(freshPrefix(), 'the border')
  // On a slow disk Redis puts off writing for up to two seconds.
  const written = async () => (await redis.client().info('persistence')).includes('aof_buffer_length:0\r')
  await until('Redis has written what it was told', written)
  return { path: join(folder, name), bytes: (await stat(join(folder, name))).size }
}

/** Never lengthens a file that the kill left shorter: zeros are not what a power cut leaves. */
export async function cutFile(path: string, bytes: number): Promise<void> {
  await truncate(path, Math.min(bytes, (await stat(path)).size))
}

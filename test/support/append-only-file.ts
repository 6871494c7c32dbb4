import { mkdirSync, writeFileSync } from 'node:fs'
import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { freshPrefix, isBefore7, type RedisServer } from './redis.ts'
import { until } from './until.ts'

/** Where the append-only file ends now, at the border of a command. */
export async function endOfFile(redis: RedisServer): Promise<{ path: string; bytes: number }> {
  const folder = isBefore7() ? redis.dir : join(redis.dir, 'appendonlydir')
  const name = (await readdir(folder)).find((each) => each.endsWith(isBefore7() ? '.aof' : '.incr.aof'))
  if (name === undefined) throw new Error('there is no append-only file')
  await redis.client().set(freshPrefix(), 'the border')
  // On a slow disk Redis puts off writing for up to two seconds.
  const written = async () => (await redis.client().info('persistence')).includes('aof_buffer_length:0\r')
  await until('Redis has written what it was told', written)
  return { path: join(folder, name), bytes: (await stat(join(folder, name))).size }
}

/**
 * What a server that starts in this folder finds as its append-only file; returns what to remove of it. Since version 7 it is one of
 * several, which a list names.
 */
export function writeAppendOnlyFile(dir: string, text: string): string {
  const [folder, name] = [join(dir, 'appendonlydir'), 'appendonly.aof']
  if (isBefore7()) {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  mkdirSync(folder)
  writeFileSync(join(folder, `${name}.1.incr.aof`), text)
  writeFileSync(join(folder, `${name}.manifest`), `file ${name}.1.incr.aof seq 1 type i\n`)
  return folder
}

/** Never lengthens a file that the kill left shorter: zeros are not what a power cut leaves. */
export async function cutFile(path: string, bytes: number): Promise<void> {
  await truncate(path, Math.min(bytes, (await stat(path)).size))
}

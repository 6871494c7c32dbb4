import { closeSync, openSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../support/app.ts'
import { clean, hasAll, judge, logOf } from '../support/oracle.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { useRedis } from '../support/redis.ts'
import { redisScene } from '../support/redis-scene.ts'

const redis = useRedis({ aof: true })

it('an output that takes no log line, as on a full disk, stops nothing, and the bridge ends when it is told to', async () => {
  const { hook, shown, text } = await redisScene(redis)
  const log = logOf('hook', hook, { status: 204 })
  const config = writeConfig(text)
  // Open for reading only: every write fails, as with ENOSPC.
  const full = openSync(config, 'r')
  onTestFinished(() => closeSync(full))
  const program = startProgram(['run', '--config', config], {}, full)
  shown.fire(50)
  await until('everything arrives', () => hasAll(shown, log), 20_000)
  program.kill('SIGTERM')
  expect(await program.ended(20_000)).toBe(0)
  expect(program.stderr()).toBe('')
  expect(judge(shown, log)).toEqual(clean)
}, 60_000)

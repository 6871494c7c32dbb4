import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createLogger } from '../../src/telemetry/log.ts'
import { lineWriter } from '../../src/telemetry/log-output.ts'
import { startApp } from '../support/app.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, sentAgain } from '../support/oracle.ts'
import { startProgram, testFolder, writeConfig } from '../support/process.ts'
import { useRedis } from '../support/redis.ts'
import { redisRig } from '../support/redis-rig.ts'
import { until } from '../support/until.ts'

const redis = useRedis({ aof: true })

it('an output that takes no log line, as on a full disk or of a reader that is gone, stops nothing, and what was lost is logged when it takes lines again', async () => {
  const row = failureRow('Its log cannot be written')
  const disk = openSync('/dev/full', 'w')
  onTestFinished(() => closeSync(disk))
  const onDisk = await rig()
  const log = createLogger({ level: 'info', destination: lineWriter(disk) })
  const { app } = await startApp(onDisk.text, { log })
  const pipe = openPipe()
  const onPipe = await rig()
  const program = startProgram(['run', '--config', writeConfig(onPipe.text)], {}, pipe.writeEnd)
  await until('the bridge at the pipe runs', () => pipe.read().includes('"poll.done"'), 20_000)
  pipe.closeReader()
  for (const { shown } of [onDisk, onPipe]) shown.fire(20)
  for (const { shown, log } of [onDisk, onPipe])
    await until('everything arrives', () => hasAll(shown, log), 20_000)

  pipe.openReader()
  onPipe.shown.fire(1)
  await until('two lines', () => pipe.read().split('\n').length > 2)
  const [notice, next] = linesIn(pipe.read())
  await until('the last alert arrives', () => hasAll(onPipe.shown, onPipe.log))
  program.kill('SIGTERM')
  await app.stop()
  expect(await program.ended(20_000)).toBe(0)
  expect(program.stderr()).toBe('')
  await row.kept('everything', () => {
    for (const { shown, log } of [onDisk, onPipe]) expect(judge(shown, log)).toEqual(clean)
  })
  await row.kept('how many lines were lost is logged once lines can be written again', () => {
    expect(notice).toMatchObject({ level: 'warn', msg: 'log lines were lost' })
    // Each attempt has its line; polls have theirs too.
    const attempts = linesIn(pipe.read()).filter(({ msg }) => msg === 'delivery.attempt')
    expect(Number(notice?.['lost']) + attempts.length).toBeGreaterThanOrEqual(21)
  })
  await row.twice('nothing', () => {
    expect([onDisk, onPipe].map(({ hook }) => sentAgain(hook))).toEqual([[], []])
  })
  await row.heals('the next line', () => expect(next?.['msg']).toEqual(expect.any(String)))
}, 60_000)

async function rig() {
  const { hook, shown, text } = await redisRig(redis)
  return { hook, shown, text, log: logOf('hook', hook, { status: 204 }) }
}

/** A pipe whose reader leaves and comes back; meanwhile every write fails with EPIPE. */
function openPipe() {
  const path = join(testFolder(), 'log')
  execFileSync('mkfifo', [path])
  const open = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  let reader = open()
  const writeEnd = openSync(path, constants.O_WRONLY)
  let text = ''
  onTestFinished(() => {
    closeSync(writeEnd)
    closeSync(reader)
  })
  return {
    writeEnd,
    /** All that was read since the reader was opened. */
    read(): string {
      const chunk = Buffer.alloc(65_536)
      try {
        for (let count = 1; count > 0; ) {
          count = readSync(reader, chunk)
          text += chunk.toString('utf8', 0, count)
        }
      } catch {
        // Nothing is in it now.
      }
      return text
    },
    closeReader: () => closeSync(reader),
    openReader() {
      reader = open()
      text = ''
    },
  }
}

function linesIn(text: string): Record<string, unknown>[] {
  const whole = text.slice(0, text.lastIndexOf('\n')).split('\n')
  return whole.map((line) => JSON.parse(line) as Record<string, unknown>)
}

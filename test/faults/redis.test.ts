import { describe, expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { acknowledgedMax, createAcknowledged } from '../../src/delivery/acknowledgement/acknowledged.ts'
import { defaultTuning } from '../../src/delivery/settings.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { cutFile, endOfFile } from '../support/append-only-file.ts'
import { api, metric, readiness } from '../support/bridge.ts'
import { startDoor } from '../support/door.ts'
import { failureRow } from '../support/failure-row.ts'
import { sideBySide } from '../support/finished.ts'
import type { OpenApi } from '../support/openapi.ts'
import { clean, hasAll, judge, logOf, sentAgain, showing } from '../support/oracle.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import type { RedisServer } from '../support/redis.ts'
import { inTurn, ownRedis, pass, redisRig } from '../support/redis-rig.ts'
import { until } from '../support/until.ts'

/** What Redis may do to a bridge that runs. The tests run side by side, each with a Redis of its own. */

const long = process.env['LONG'] === '1'
const taken = { status: 204 } as const

/** Asks for all that the API shows: each address answers, whatever it needs of Redis. */
async function readAll(url: string): Promise<void> {
  const { paths } = await api<OpenApi>(url, '/api/v1/openapi.json')
  const shown = Object.keys(paths).filter((path) => paths[path]?.['get'] && !path.endsWith('/events'))
  const asked = shown.map((path) => path.replace(/\{(source|name)\}/, 'main').replace('{id}', '1'))
  for (const path of asked) expect([200, 503], path).toContain((await fetch(url + path)).status)
}

/** The errors of which nobody hears while it works: one ends a bridge. */
async function unhandledOf(work: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  await work()
  process.off('unhandledRejection', note)
  return unhandled
}

/** Longer than the lock of a job. */
const outageMs = long ? 70_000 : defaultTuning.lockMs + 2_000

// A group after the other: a process that plays more bridges, feeds and receivers than this at a time is late itself.
describe('Redis that is away for longer than a lock', () => {
  it.concurrent(
    'after longer than a lock, while sends run and workers idle: nothing is lost, nothing repeated, on within seconds',
    { timeout: outageMs + 90_000 },
    sideBySide(async () => {
      const row = failureRow('It is killed and comes back with its append-only file')
      const redis = await ownRedis()
      const { sandbox, hook, shown, text, left } = await redisRig(redis)
      let slow = true
      const log = logOf('hook', hook, taken, () => (slow ? { ...taken, afterMs: 800 } : undefined))
      const { url } = await inTurn(async () => {
        const started = await startApp(text)
        shown.fire(40)
        await until('sends run', () => log.attempts() >= 5)
        return started
      })
      await redis.kill9()
      await until('the bridge says so', async () => (await readiness(url)).includes('Redis'))
      await row.kept('`/readyz` and the status page say so', async () =>
        expect(await (await fetch(url)).text()).toMatch(/Redis[^<]*(away|not|cannot|lost)/),
      )
      expect((await fetch(`${url}/metrics`)).status).toBe(200)
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      expect(await unhandledOf(() => readAll(url))).toEqual([])
      const calls = sandbox.requests.length
      const first = shown.ids.size
      shown.fire(10)
      await pass(outageMs)
      // A call that was paid for before the outage may still end in it; none is made without a unit.
      await row.kept('no call is made meanwhile', () =>
        expect(sandbox.requests.length - calls).toBeLessThanOrEqual(1),
      )
      slow = false
      await redis.start()
      const backMs = performance.now()
      const meanwhile = [...shown.ids.keys()].slice(first)
      await until(
        'what fired meanwhile arrives',
        () => meanwhile.every((mark) => log.taken.includes(mark)),
        30_000,
      )
      await row.heals('10 s after its return', performance.now() - backMs)
      await until(
        'all is delivered and recorded',
        async () => hasAll(shown, log) && (await left()) === 0,
        40_000,
      )
      await row.heals('15 s for what was on its way', performance.now() - backMs)
      await until('ready again', async () => (await readiness(url)) === 'ok')
      await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
      await row.twice('nothing while the process lives that sent it', () =>
        expect(sentAgain(hook)).toEqual([]),
      )
    }),
  )

  it.concurrent(
    'under two replicas of which the one that was sending reaches it late: only that is repeated',
    { timeout: 90_000 },
    sideBySide(async () => {
      const row = failureRow('It is killed and comes back with its append-only file')
      const redis = await ownRedis()
      const door = await startDoor(redis.socketPath)
      const { hook, shown, text, left } = await redisRig(redis)
      const patient = text.replace('timeout: 10s', 'timeout: 90s')
      const repeated = Promise.withResolvers<void>()
      const sends = new Map<string, number>()
      const log = logOf('hook', hook, taken, (mark) => {
        const count = (sends.get(mark) ?? 0) + 1
        sends.set(mark, count)
        if (mark === 'A00002' && count > 1) repeated.resolve()
        if (count > 1 || mark > 'A00002') return undefined
        // The first is answered while Redis cannot be told, the second is still on its way when it is taken over.
        return mark === 'A00001' ? { ...taken, afterMs: 1_000 } : { ...taken, after: repeated.promise }
      })
      await inTurn(async () => {
        await startApp(patient.replace(redis.url, door.url))
        shown.fire(2)
        await until('both are being sent', () => log.attempts() === 2)
      })
      door.close()
      await redis.kill9()
      await redis.start()
      const backMs = performance.now()
      await startApp(patient)
      shown.fire(3)
      await until('everything arrives', () => hasAll(shown, log), 40_000)
      await until('what was on its way goes out again', () => log.attempts() >= 7, 40_000)
      expect(performance.now() - backMs).toBeLessThan(30_000)
      await door.open()
      await until('all is recorded', async () => (await left()) === 0, 30_000)
      await row.kept('everything', () => expect(judge(shown, log).missing).toEqual([]))
      await row.twice(
        'with several replicas, what was sent by one that reaches Redis again more than 4 s after another has taken it over',
        () => expect([defaultTuning.takeOverMs, sends.get('A00001')]).toEqual([4_000, 2]),
      )
      await row.twice('or is still on its way then', () => expect(sends.get('A00002')).toBe(2))
      await row.heals('10 s after its return', () =>
        expect(['A00003', 'A00004', 'A00005'].map((mark) => sends.get(mark))).toEqual([1, 1, 1]),
      )
    }),
  )

  it.concurrent(
    'without its last second, and the bridge died with it: nothing is lost, only that second is repeated',
    { timeout: 90_000 },
    sideBySide(async () => {
      const row = failureRow('The same, and the bridge died with it')
      const redis = await ownRedis()
      const { hook, shown, text, idle } = await redisRig(redis)
      let isSlow = false
      const log = logOf('hook', hook, taken, () => (isSlow ? { ...taken, afterMs: 2_000 } : undefined))
      const config = writeConfig(text)
      const first = startProgram(['run', '--config', config])
      shown.fire(20)
      await until('20 are delivered', () => hasAll(shown, log), 30_000)
      await idle()
      const end = await endOfFile(redis)
      shown.fire(15)
      await until('15 more are delivered', () => hasAll(shown, log))
      isSlow = true
      shown.fire(3)
      await until('3 are on their way', () => hasAll(shown, log))
      isSlow = false
      first.kill('SIGKILL')
      const killedMs = performance.now()
      await first.ended()
      await redis.kill9()
      // In the middle of a command, as a power cut leaves it.
      await cutFile(end.path, end.bytes + 7)
      shown.fire(5)
      await redis.start()
      startProgram(['run', '--config', config])
      await until('everything arrives', () => hasAll(shown, log), 40_000)
      await row.heals('10–25 s after its death, by the lease', performance.now() - killedMs)
      await idle()
      const lost = new Map([...shown.ids.keys()].slice(20, 38).map((mark) => [mark, 1]))
      const { doubled, ...rest } = judge(shown, log, { cutOff: lost })
      await row.kept('everything', () => expect({ ...rest, doubled: [] }).toEqual(clean))
      await row.twice('what was delivered in that second, and what it was sending', () =>
        expect(doubled).toEqual([]),
      )
    }),
  )

  it.concurrent(
    'Redis that is away keeps no bridge from ending on SIGTERM, and nothing is lost by it',
    { timeout: 120_000 },
    sideBySide(async () => {
      const row = failureRow('It is told to stop (`SIGTERM`) while Redis is away')
      const redis = await ownRedis()
      const { hook, shown, text, left } = await redisRig(redis)
      const sinkTimeoutMs = 3_000
      let lastSendMs = 0
      const log = logOf('hook', hook, taken, (_mark, attempt) => {
        const hangs = attempt === 4
        lastSendMs = Math.max(lastSendMs, performance.now() + (hangs ? sinkTimeoutMs : 300))
        return hangs ? { kind: 'hang' } : { ...taken, afterMs: 300 }
      })
      const config = writeConfig(text.replace('timeout: 10s', `timeout: ${sinkTimeoutMs}ms`))
      const program = startProgram(['run', '--config', config])
      shown.fire(60)
      await until('sends run', () => log.attempts() > 4, 30_000)
      await redis.kill9()
      program.kill('SIGTERM')
      const toldMs = performance.now()
      expect(await program.ended(40_000)).toBe(0)
      const endedMs = performance.now()
      await row.heals('it ends within 16 s of its last send', endedMs - lastSendMs)
      await row.heals("which has its sink's `timeout`", () =>
        expect(endedMs - toldMs).toBeGreaterThan(lastSendMs - toldMs),
      )
      // What was acknowledged while Redis was away could not be recorded.
      const cutOff = new Map(log.taken.map((mark) => [mark, 1]))
      await redis.start()
      startProgram(['run', '--config', config])
      await until('everything arrives', () => hasAll(shown, log), 50_000)
      await until('all is recorded', async () => (await left()) === 0, 30_000)
      const { doubled, ...rest } = judge(shown, log, { cutOff })
      await row.kept('everything', () => expect({ ...rest, doubled: [] }).toEqual(clean))
      await row.twice('what was acknowledged and could not be recorded', () => expect(doubled).toEqual([]))
    }),
  )

  it.concurrent(
    'Redis that is away keeps no bridge from ending on SIGTERM, also where it only does not answer',
    { timeout: 120_000 },
    sideBySide(async () => {
      const row = failureRow('It is told to stop (`SIGTERM`) while Redis is away')
      const redis = await ownRedis()
      const { sandbox, hook, shown, text, left } = await redisRig(redis)
      let lastSendMs = 0
      const log = logOf('hook', hook, taken, () => {
        lastSendMs = performance.now()
        return taken
      })
      const config = writeConfig(text)
      const program = startProgram(['run', '--config', config])
      shown.fire(20)
      await until('everything is sent', () => hasAll(shown, log), 30_000)
      // Where a poll is on its way, its rows and what was learnt from them are written one after the other.
      const asked = sandbox.requests.length
      while (sandbox.requests.length === asked) await new Promise((resolve) => setImmediate(resolve))
      redis.freeze()
      program.kill('SIGTERM')
      expect(await program.ended(40_000)).toBe(0)
      await row.heals('it ends within 16 s of its last send', performance.now() - lastSendMs)
      redis.thaw()
      startProgram(['run', '--config', config])
      shown.fire(5)
      await until('everything arrives', () => hasAll(shown, log), 50_000)
      await until('all is recorded', async () => (await left()) === 0, 30_000)
      const cutOff = new Map(log.taken.map((mark) => [mark, 1]))
      const { doubled, ...rest } = judge(shown, log, { cutOff })
      await row.kept('everything', () => expect({ ...rest, doubled: [] }).toEqual(clean))
      await row.twice('what was acknowledged and could not be recorded', () => expect(doubled).toEqual([]))
    }),
  )
})

describe('Redis that comes back without what it knew', () => {
  it.concurrent(
    'without its last second, under a bridge that runs: what was rewound is taken again, and not sent again',
    { timeout: 60_000 },
    sideBySide(async () => {
      const row = failureRow('It comes back without its last second')
      const redis = await ownRedis()
      const { sandbox, hook, shown, text, prefix, idle } = await redisRig(redis)
      let refusing = false
      const log = logOf('hook', hook, taken, (_mark, attempt) =>
        refusing && attempt % 2 === 0 ? { status: 503 } : undefined,
      )
      const { lines } = await inTurn(async () => {
        const started = await startApp(text)
        shown.fire(20)
        await until('20 are delivered', () => hasAll(shown, log))
        await idle()
        return started
      })
      const end = await endOfFile(redis)
      refusing = true
      shown.fire(30)
      await until('some of the next are delivered', () => log.taken.length > 30)
      await redis.kill9()
      await cutFile(end.path, end.bytes)
      refusing = false
      const said = lines.length
      await redis.start()
      const kept = await jobsIn(redis, prefix)
      await until('everything arrives', () => hasAll(shown, log), 20_000)
      shown.fire()
      await until('what fires next arrives too', () => hasAll(shown, log))
      await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
      await row.kept('marks and jobs are rewound together, the feed is read again', () => {
        expect(kept).toBeLessThan(50)
        expect(newOf(lines.slice(said))[0] ?? 50 - kept).toBe(50 - kept)
      })
      await row.heals('the next poll', () =>
        until('both polls are told', () => `${newOf(lines.slice(said))}` === `${50 - kept},1`),
      )
      await row.twice('nothing while the same process lives', () =>
        expect(judge(shown, log).doubled).toEqual([]),
      )
      expect(sandbox.requests.every(({ status }) => status === 200)).toBe(true)
    }),
  )

  it.concurrent(
    'without its last second, under two replicas: only what was delivered in that second, or was on its way, is repeated',
    { timeout: 60_000 },
    sideBySide(async () => {
      const row = failureRow('It comes back without its last second')
      const redis = await ownRedis()
      const { hook, shown, text, idle } = await redisRig(redis)
      let afterMs = 20
      const log = logOf('hook', hook, taken, () => ({ ...taken, afterMs }))
      const replicas = await inTurn(async () => {
        const started = [await startApp(text), await startApp(text)]
        shown.fire(20)
        await until('20 are delivered', () => hasAll(shown, log))
        await idle()
        return started
      })
      const end = await endOfFile(redis)
      shown.fire(30)
      await until('30 more are delivered', () => hasAll(shown, log))
      const foundSince = (from: number[]) =>
        replicas.flatMap(({ lines }, index) => newOf(lines.slice(from[index])))
      const before = replicas.map(({ lines }) => lines.length)
      afterMs = 2_000
      shown.fire(5)
      await until('5 are on their way', () => hasAll(shown, log))
      afterMs = 20
      await until('their poll is over', () => foundSince(before).includes(5))
      await redis.kill9()
      await cutFile(end.path, end.bytes)
      const said = replicas.map(({ lines }) => lines.length)
      await redis.start()
      await row.heals('the next poll', () =>
        until('the feed is read again', () => foundSince(said)[0] === 35),
      )
      await idle()
      shown.fire()
      await until('what fires next arrives too', () => hasAll(shown, log))
      const lastSecond = new Map([...shown.ids.keys()].slice(20, 55).map((mark) => [mark, 1]))
      const { doubled, ...rest } = judge(shown, log, { cutOff: lastSecond })
      await row.kept('everything', () => expect({ ...rest, doubled: [] }).toEqual(clean))
      await row.twice(
        'with several replicas, what was delivered in that second or was on its way at its end',
        () => expect(doubled).toEqual([]),
      )
    }),
  )

  it.concurrent(
    'under a bridge that runs (FLUSHALL): told loudly, no history is sent, nothing that waited or comes is lost',
    { timeout: 60_000 },
    sideBySide(async () => {
      const row = failureRow('It forgets everything (`FLUSHALL`) under a bridge that runs')
      const redis = await ownRedis()
      const { sandbox, hook, shown, text, idle } = await redisRig(redis, { history: 250, startFrom: 'now' })
      let down = false
      const log = logOf('hook', hook, taken, () => (down ? { status: 503 } : undefined))
      const first = await startApp(text)
      await until('the history is passed over', () => sandbox.requests.length > 2)
      shown.fire(3)
      await until('3 are delivered', () => hasAll(shown, log))
      await idle()
      await first.app.stop()
      const { url, lines } = await startApp(text)
      shown.fire(5)
      await until('5 are delivered', () => hasAll(shown, log))
      down = true
      shown.fire(5)
      await until('5 more wait', () => log.attempts() > 11)
      const said = lines.length
      await redis.client().flushall()
      shown.fire(5)
      const told = () =>
        lines.findIndex(({ level, msg }) => level === 'error' && /Redis has lost/.test(String(msg)))
      await until('the loss is told', () => told() >= 0)
      down = false
      await until('everything arrives', () => hasAll(shown, log), 20_000)
      shown.fire(5)
      await until('what fires next arrives too', () => hasAll(shown, log))
      await idle()
      const before = [...shown.ids.keys()].slice(0, 3)
      const verdict = judge(shown, log, { cutOff: new Map(before.map((mark) => [mark, 1])) })
      await row.kept('what fired since the last complete walk, and in the hour before it', () =>
        expect(verdict.missing).toEqual([]),
      )
      await row.kept('reported as an error and in `alert_bridge_state_lost_total`', async () =>
        expect(await metric(url, 'alert_bridge_state_lost_total{source="main"}')).toBe(1),
      )
      await row.kept('history that `startFrom` passed over is not sent', () =>
        expect([verdict.unknown, verdict.misnamed]).toEqual([[], []]),
      )
      await row.twice('alerts of that hour', () =>
        expect(before.map((mark) => log.taken.filter((each) => each === mark).length)).toEqual([2, 2, 2]),
      )
      await row.twice('beyond the last 10,000 that the process remembers as acknowledged', () => {
        expect(verdict.doubled).toEqual([])
        expect(remembered()).toBe(10_000)
      })
      // A poll may be under way when it happens.
      await row.heals('the next poll', () =>
        expect(newOf(lines.slice(said, told()), { all: true }).length).toBeLessThanOrEqual(2),
      )
    }),
  )

  it.concurrent(
    'under two replicas (FLUSHALL): nothing is lost, and only what another replica has delivered is repeated',
    { timeout: 60_000 },
    sideBySide(async () => {
      const row = failureRow('It forgets everything (`FLUSHALL`) under a bridge that runs')
      const redis = await ownRedis()
      const { sandbox, hook, text, prefix, idle } = await redisRig(redis)
      let minutesAgo = 0
      const shown = showing({
        fire: (fields) =>
          sandbox.fire({ ...fields, firedAt: new Date(Date.now() - minutesAgo * 60_000).toISOString() }),
      })
      const log = logOf('hook', hook, taken)
      const bridges = [await startApp(text), await startApp(text)]
      await until('polls run', () => sandbox.requests.length > 2)
      for (minutesAgo of [70, 50]) shown.fire(3)
      minutesAgo = 0
      shown.fire(20)
      await until('26 are delivered', () => hasAll(shown, log))
      await idle()
      // They are sent before they are marked: the poll that took them may be under way.
      const deliveredMs = Date.now()
      const walkedMs = async () => {
        const { sources } = await api<StatusView>(bridges[0]?.url ?? '', '/api/v1/status')
        return Date.parse(sources[0]?.lastCompleteWalkAt ?? '')
      }
      await until('a later poll is complete', async () => (await walkedMs()) > deliveredMs)
      const before = new Map([...shown.ids.keys()].map((mark) => [mark, 1]))
      const said = bridges.map(({ lines }) => lines.length)
      await redis.client().flushall()
      shown.fire(5)
      await until('what fires next arrives', () => hasAll(shown, log), 20_000)
      await idle()
      const { doubled, ...rest } = judge(shown, log, { cutOff: before })
      await row.kept('what fired since the last complete walk, and in the hour before it', async () => {
        expect({ ...rest, doubled: [] }).toEqual(clean)
        // All but those of 70 minutes ago.
        expect(await jobsIn(redis, prefix)).toBe(28)
      })
      await row.twice('with several replicas, also what another has delivered', () =>
        expect(doubled).toEqual([]),
      )
      // A poll may be under way when it happens.
      await row.heals('the next poll', () => {
        const after = bridges.map(({ lines }, index) => lines.slice(said[index]))
        const told = after.flatMap((lines) => {
          const at = lines.findIndex(({ msg }) => /Redis has lost/.test(String(msg)))
          return at === -1 ? [] : [newOf(lines.slice(0, at), { all: true }).length]
        })
        // Its lease is lost, too: where both have polled before, both may find the loss, each at its next poll.
        expect(told.length).toBeGreaterThan(0)
        expect(Math.max(...told)).toBeLessThanOrEqual(2)
      })
    }),
  )

  it.concurrent(
    'while the bridge is down: startFrom decides as on a first start, and says so',
    { timeout: 60_000 },
    sideBySide(async () => {
      const row = failureRow('It forgets everything while the bridge is down')
      const redis = await ownRedis()
      const { hook, shown, text, idle } = await redisRig(redis, { startFrom: 'now' })
      let down = false
      const log = logOf('hook', hook, taken, () => (down ? { status: 503 } : undefined))
      const first = await startApp(text)
      shown.fire(5)
      await until('5 are delivered', () => hasAll(shown, log))
      down = true
      shown.fire(2)
      await until('2 wait', () => log.attempts() > 8)
      await first.app.stop()
      await redis.client().flushall()
      down = false
      // The feed tells whole seconds: what was fired in the second of the start counts.
      await pass(1_100)
      const second = await startApp(text)
      const isFirst = ({ msg }: Record<string, unknown>) =>
        /nothing is known of this source/.test(String(msg))
      await row.kept('it looks like a first start, and is logged as one', () =>
        until('the start is told', () => second.lines.some(isFirst)),
      )
      const sinceStart = () =>
        judge({ ...shown, ids: new Map([...shown.ids].slice(7)) }, { ...log, taken: log.taken.slice(5) })
      shown.fire(5)
      await row.heals('the next poll', () =>
        until('what fires next arrives', () => sinceStart().missing.length === 0),
      )
      await idle()
      await row.kept('what `startFrom` says', () =>
        expect(sinceStart()).toMatchObject({ missing: [], unknown: [], doubled: [] }),
      )
      await row.kept('With `now`, what waited is gone: keep the append-only file', () =>
        expect(judge(shown, log).missing).toEqual(['A00006', 'A00007']),
      )
      await second.app.stop()
      await redis.client().flushall()
      await startApp(text.replace('startFrom: now', 'startFrom: beginning'))
      await until('all of it arrives', () => hasAll(shown, log))
      await until('the history comes again', () => log.taken.length >= 22)
      await idle()
      await row.twice('alerts of the history that `startFrom` names', () => {
        const verdict = judge(shown, log, { cutOff: new Map([...shown.ids.keys()].map((mark) => [mark, 1])) })
        expect(verdict).toEqual(clean)
        expect(log.taken).toHaveLength(22)
      })
    }),
  )
})

/** How many acknowledgements a process remembers. */
function remembered(): number {
  const memory = createAcknowledged()
  const record = { number: 1, atMs: 0, durationMs: 0, result: 'delivered' as const, text: '' }
  for (let count = 0; count < acknowledgedMax + 100; count += 1) memory.add(`hook/${count}`, record)
  let known = 0
  for (let count = 0; count < acknowledgedMax + 100; count += 1) if (memory.get(`hook/${count}`)) known += 1
  return known
}

/** How many new alerts each poll has found that found any. */
function newOf(lines: readonly Record<string, unknown>[], { all = false } = {}): number[] {
  return lines.flatMap((line) =>
    line['msg'] === 'poll.done' && (all || Number(line['new']) > 0) ? [Number(line['new'])] : [],
  )
}

async function jobsIn(redis: RedisServer, prefix: string): Promise<number> {
  const keys = await redis.client().keys(`${queuePrefix(prefix)}:hook:main.*`)
  return keys.filter((key) => /main\.\d+$/.test(key)).length
}

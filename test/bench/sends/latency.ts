import type { ChildProcess } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { postAlerts, startAlertmanager } from './alertmanager.ts'
import { type BridgeOptions, startBare, startScript, writeConfig } from './arms.ts'
import { startPagedFeed } from './feed.ts'
import { arrivedAt } from './kill.ts'
import { sharedNowMs, startBridge } from './process.ts'
import type { Order, Timed } from './receiver.ts'
import { kill, message, type Rig } from './rig.ts'
import { median, spread } from './statistics.ts'
import { type Ids, openBare } from './stored.ts'
import { prefix, sinks } from './work.ts'

/**
 * How long after the feed's answer the request of each alert comes to each sink. Arms that poll do so every 0.3 s; the others are
 * handed their alerts as often, and the time counts from then.
 */
interface Live {
  readonly processes: readonly ChildProcess[]
  /** Shows `news` new alerts at every `everyPolls`th poll, until `stop`. */
  load(load: Load): { stop(): void }
  /** By id: when its page was answered, or it was given. */
  readonly shownMs: ReadonlyMap<number, number>
  dispose(): unknown
}

type StartLive = (rig: Rig) => Promise<Live>

interface Load {
  readonly name: string
  readonly news: number
  readonly everyPolls: number
  readonly seconds: number
}

const pollMs = 300
/** The first warms up what is measured next. */
const warming: Load = { name: 'warming up', news: 20, everyPolls: 1, seconds: 8 }
export const loads: readonly Load[] = [
  { name: 'one every 0.9 s', news: 1, everyPolls: 3, seconds: 60 },
  { name: '20 a poll', news: 20, everyPolls: 1, seconds: 20 },
  { name: '80 a poll', news: 80, everyPolls: 1, seconds: 20 },
]
const arrivalTimeoutMs = 60_000

export function liveArms(own: BridgeOptions): Record<string, StartLive> {
  return {
    bare: async (rig) => {
      const queues = openBare(rig.redis, prefix)
      const worker = startBare('both', rig.redis.socketPath, rig.receiver.url, 0)
      return given([worker], queues.add, queues.close)
    },
    alertmanager: async ({ folder, receiver }) => {
      const own = join(folder, 'live-alertmanager')
      mkdirSync(own)
      const url = `http://127.0.0.1:${await freePort()}`
      const child = await startAlertmanager(own, url, receiver.url)
      return given([child], (ids) => postAlerts(url, ids))
    },
    script: async ({ receiver }) => polled((feed) => startScript(feed, receiver.url, pollMs)),
    bridge: async (rig) =>
      polled((feed) => {
        const pace = `poll: { every: ${pollMs}ms, minInterval: ${pollMs}ms, historyPages: 0 }`
        const budget = 'budget: { unitsPerDay: 1000000, requestsPerMinute: 240 }'
        const source = `{ baseUrl: "${feed}", token: none-is-needed, ${pace}, ${budget} }`
        return startBridge(['--config', writeConfig(rig, prefix, source)], own)
      }),
  }
}

async function polled(start: (feed: string) => ChildProcess): Promise<Live> {
  const feed = await startPagedFeed()
  let polls = 0
  const count = () => {
    polls += 1
  }
  feed.onHead = count
  const child = start(feed.url)
  // The first poll begins with what is there.
  await until('it polls', () => polls > 1, 30_000)
  return {
    ...{ processes: [child], shownMs: feed.answeredMs },
    load({ news, everyPolls }) {
      let heads = 0
      feed.onHead = () => {
        if (heads % everyPolls === 0) feed.add(news)
        heads += 1
      }
      return {
        stop() {
          feed.onHead = count
        },
      }
    },
    dispose: () => feed.stop(),
  }
}

/** For arms that do not poll. */
function given(
  processes: readonly ChildProcess[],
  give: (ids: Ids) => Promise<unknown>,
  dispose: Live['dispose'] = () => {},
): Live {
  const shownMs = new Map<number, number>()
  return {
    ...{ processes, shownMs, dispose },
    load({ news, everyPolls }) {
      const timer = setInterval(() => {
        const nowMs = sharedNowMs()
        const ids: Ids = [shownMs.size + 1, shownMs.size + news]
        for (let id = ids[0]; id <= ids[1]; id += 1) shownMs.set(id, nowMs)
        void give(ids)
      }, pollMs * everyPolls)
      return { stop: () => clearInterval(timer) }
    },
  }
}

/** Milliseconds of each request, in ascending order, for each load. */
export async function latenciesOf(start: StartLive, rig: Rig): Promise<Map<string, number[]>> {
  const live = await start(rig)
  const results = new Map<string, number[]>()
  for (const load of [warming, ...loads]) {
    const before = live.shownMs.size
    rig.receiver.process.send({ count: 0, isTimed: true } satisfies Order)
    await message(rig.receiver.process, 'ready')
    const running = live.load(load)
    await sleep(load.seconds * 1_000)
    running.stop()
    const wanted = (live.shownMs.size - before) * sinks.length
    await until('all arrive', async () => (await arrivedAt(rig)).requests >= wanted, arrivalTimeoutMs)
    const lags = (await timedAt(rig)).map(
      ([, id, atMs]) => atMs - (live.shownMs.get(idNumber(id)) ?? Number.NaN),
    )
    if (load !== warming)
      results.set(
        load.name,
        lags.toSorted((a, b) => a - b),
      )
  }
  await kill(live.processes, 'SIGKILL')
  await live.dispose()
  return results
}

async function timedAt({ receiver }: Rig): Promise<readonly Timed[]> {
  const told = message<{ timed: readonly Timed[] }>(receiver.process, 'timed')
  receiver.process.send({ tell: 'timed' })
  return (await told).timed
}

/** The `webhook-id` has the source before it. */
function idNumber(id: string): number {
  return Number(id.split('.').at(-1))
}

export interface Latencies {
  readonly name: string
  readonly of: ReadonlyMap<string, readonly number[]>
}

export function summarize(rounds: readonly Latencies[]) {
  return [...new Set(rounds.map(({ name }) => name))].flatMap((name) =>
    loads.map((load) => {
      const runs = rounds.filter((each) => each.name === name).map((each) => each.of.get(load.name) ?? [])
      const at = (share: number) => runs.map((lags) => lags[Math.ceil(share * lags.length) - 1] ?? Number.NaN)
      return {
        ...{ name, load: load.name, requests: runs.map(({ length }) => length) },
        ...{
          fastestTenth: median(at(0.1)),
          p50: median(at(0.5)),
          p99: median(at(0.99)),
          p99Spread: spread(at(0.99)),
          most: Math.max(...at(1)),
        },
      }
    }),
  )
}

export function printLatencies(rounds: readonly Latencies[], title: string, print: (line: string) => void) {
  print(
    `\n${title}\n\n| | new alerts | fastest tenth | p50 | p99 | least to most | longest | requests of a round |`,
  )
  print('|---|---|---|---|---|---|---|---|')
  for (const { name, load, fastestTenth, p50, p99, p99Spread, most, requests } of summarize(rounds))
    print(
      `| ${name} | ${load} | ${fastestTenth.toFixed(1)} ms | ${p50.toFixed(1)} ms | ${p99.toFixed(0)} ms | ${p99Spread.map((each) => each.toFixed(0)).join(' to ')} | ${most.toFixed(0)} ms | ${requests.join(', ')} |`,
    )
}

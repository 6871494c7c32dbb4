import type { ChildProcess } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Arm, allArms, type Started } from './sends/arms.ts'
import { type KilledArm, killed, moments, printKilled } from './sends/kill.ts'
import { type Latencies, latenciesOf, liveArms, printLatencies, summarize } from './sends/latency.ts'
import { cpuOf, residentMb } from './sends/process.ts'
import { kill, message, type Rig, startRig } from './sends/rig.ts'
import { median, spread } from './sends/statistics.ts'
import { versions } from './sends/versions.ts'
import { sinks, width } from './sends/work.ts'

/**
 * How many acknowledged sends a second the sender reaches beside what it is made of and what people take in its place:
 * each arm drains the same alerts to the same receiver on this machine, one after the other, and again for each round. A
 * figure of one arm alone says little on a busy machine; the ratio of two arms of the same rounds says more.
 */
const { values: given } = parseArgs({
  options: {
    alerts: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    /** Another build of the bridge, by its main file: before and after, side by side. */
    beside: { type: 'string' },
    /** Names, with commas between them; of one with a comma in it, that name alone. */
    arms: { type: 'string', multiple: true },
    /** A folder for CPU profiles of the bridge. */
    profile: { type: 'string' },
    /** What a kill in the middle loses, in the place of how fast it is. */
    kill: { type: 'boolean', default: false },
    /** From the page's answer to the request at the sink, in the place of how fast it is. */
    latency: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const alerts = Number(given.alerts)
const total = alerts * sinks.length
/** What the others are compared with. */
const limit = 'bare'

interface Measured {
  readonly perSecond: number
  /** Of the sending processes and of Redis. A busy machine changes these less than `perSecond`. */
  readonly cpuMsPerThousand: number
  readonly redisMsPerThousand: number
  /** The most that the processes had in memory. */
  readonly mb: number
}

const flags = given.profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', given.profile]
const arms = allArms({ beside: given.beside, flags })
// BullMQ alone sends nothing that could be lost, and undici alone keeps nothing that could be sent.
const live = liveArms({ flags })
const names = arms.names.filter((name) => {
  if (given.latency) return name in live
  return !given.kill || !['bullmq', 'undici'].includes(name)
})
const wanted = given.arms?.flatMap((text) => (names.includes(text) ? [text] : text.split(','))) ?? names
const unknown = wanted.filter((name) => !names.includes(name))
if (unknown.length > 0) {
  note(`There is no arm ${unknown.join(', ')} to measure so; there are: ${names.join('; ')}.`)
  process.exit(2)
}
const { chosen, missing } = arms.choose(wanted)
for (const sentence of missing) note(sentence)
const rig = await startRig()
try {
  if (given.kill) await measureKills()
  else if (given.latency) await measureLatencies()
  else await measureRates()
} finally {
  await rig.dispose()
}
process.exit()

async function measureRates(): Promise<void> {
  const results = new Map<string, Measured[]>()
  for (let round = 0; round < Number(given.rounds); round++)
    for (const [name, arm] of chosen) {
      const measured = await drain(arm)
      results.set(name, [...(results.get(name) ?? []), measured])
      const { perSecond, cpuMsPerThousand, redisMsPerThousand } = measured
      note(
        `${name}: ${perSecond.toFixed(0)} a second, ${cpuMsPerThousand.toFixed(0)} ms of CPU a thousand, Redis ${redisMsPerThousand.toFixed(0)} ms`,
      )
    }
  report(results)
}

async function measureKills(): Promise<void> {
  const results: KilledArm[] = []
  for (let round = 0; round < Number(given.rounds); round++)
    for (const [name, arm] of chosen)
      for (const moment of moments) {
        await empty(rig)
        const result = await killed(arm, rig, alerts, moment)
        results.push({ name, moment, ...result })
        note(`${name}, killed ${moment}: ${result.never} never, ${result.again} again, ${result.seconds} s`)
      }
  if (given.json) print(JSON.stringify({ ...about(), kills: results }, null, 2))
  else printKilled(results, `${title()}, killed and started again`, print)
}

async function measureLatencies(): Promise<void> {
  const results: Latencies[] = []
  for (let round = 0; round < Number(given.rounds); round++)
    for (const [name] of chosen) {
      const start = live[name]
      if (start === undefined) continue
      await empty(rig)
      results.push({ name, of: await latenciesOf(start, rig) })
      note(`${name}: measured`)
    }
  if (given.json) print(JSON.stringify({ ...about(), latencies: summarize(results) }, null, 2))
  else printLatencies(results, `${machine()}, from the page's answer to the request at a sink`, print)
}

async function drain(arm: Arm): Promise<Measured> {
  await empty(rig)
  await arm.store(rig, alerts)
  const receiver = rig.receiver.process
  receiver.send({ count: total })
  await message(receiver, 'ready')
  const started = await arm.start(rig, alerts)
  const teller = started.teller ?? receiver
  const told = message<{ perSecond: number; sends: number }>(teller, 'perSecond')
  const warm = message(teller, 'warm').then(() => spentMs(started))
  let peak = 0
  const look = setInterval(() => {
    peak = Math.max(peak, sum(started.processes.map(({ pid }) => residentMb(pid ?? 0))))
  }, 100)
  const [{ perSecond, sends }] = await Promise.all([told, started.feed?.()])
  const [before, after] = [await warm, spentMs(started)]
  clearInterval(look)
  await kill(started.processes, given.profile === undefined ? 'SIGKILL' : 'SIGTERM')
  started.stop?.()
  const cost = (at: 0 | 1) => ((after[at] - before[at]) * 1_000) / sends
  return { perSecond, mb: peak, cpuMsPerThousand: cost(0), redisMsPerThousand: cost(1) }
}

function spentMs({ processes }: Started): [processes: number, redis: number] {
  return [sum(processes.map((each: ChildProcess) => cpuOf(each.pid ?? 0))), cpuOf(rig.redis.pid)]
}

async function empty({ redis, folder }: Rig): Promise<void> {
  const client = redis.client()
  await client.flushall()
  client.disconnect()
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
}

function report(results: ReadonlyMap<string, readonly Measured[]>): void {
  const base = results.get(limit) ?? []
  const lines = [...results].map(([name, runs]) => {
    const rates = runs.map(({ perSecond }) => perSecond)
    const ratios = base.flatMap((each, at) => (runs[at] ? [runs[at].perSecond / each.perSecond] : []))
    return {
      ...{ name, rates, perSecond: median(rates), spread: spread(rates) },
      cpu: median(runs.map((each) => each.cpuMsPerThousand)),
      redis: median(runs.map((each) => each.redisMsPerThousand)),
      ...{ ratio: median(ratios), ratioSpread: spread(ratios), mb: Math.max(...runs.map(({ mb }) => mb)) },
    }
  })
  if (given.json) {
    print(JSON.stringify({ ...about(), lines }, null, 2))
    return
  }
  print(
    `\n${title()}\n\n| | sends a second | least to most | to "${limit}" | least to most | CPU a thousand | of Redis | peak memory |`,
  )
  print('|---|---|---|---|---|---|---|---|')
  for (const { name, perSecond, spread: rates, ratio, ratioSpread, cpu, redis, mb } of lines)
    print(
      `| ${name} | ${perSecond.toFixed(0)} | ${range(rates, 0)} | ${ratio.toFixed(2)} | ${range(ratioSpread, 2)} | ${cpu.toFixed(0)} ms | ${redis.toFixed(0)} ms | ${mb.toFixed(0)} MB |`,
    )
}

function about() {
  return { alerts, sinks: sinks.length, width, ...versions(chosen.map(([name]) => name)) }
}

function title(): string {
  return `${alerts} alerts to ${sinks.length} webhooks, ${width} sends of each at a time; ${machine()}`
}

function machine(): string {
  const { cores, processor, versions: all } = about()
  return `${cores} cores of ${processor}, ${all.join(', ')}`
}

function range([least, most]: readonly [number, number], digits: number): string {
  return `${least.toFixed(digits)} to ${most.toFixed(digits)}`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0)
}

function note(line: string): void {
  process.stderr.write(`${line}\n`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

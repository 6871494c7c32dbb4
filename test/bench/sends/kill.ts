import { setTimeout as sleep } from 'node:timers/promises'
import type { Arm } from './arms.ts'
import type { Arrived, Order } from './receiver.ts'
import { kill, message, type Rig } from './rig.ts'
import { sinks } from './work.ts'

interface Killed {
  /** Sends that never arrived. */
  readonly never: number
  /** Requests beyond one for each send that arrived. */
  readonly again: number
  /** From the new start to the last arrival, in whole seconds. */
  readonly seconds: number
}

/**
 * So long after the last arrival nothing more is expected: twice BullMQ's lock of 30 s, which a worker that was killed leaves, and
 * some more.
 */
const quietMs = 75_000
const lookMs = 500
const refusalMs = 10_000

export const moments = ['when half had arrived', 'while the receiver answered 503'] as const
type Moment = (typeof moments)[number]

/**
 * Kills all processes of the arm in mid-drain, or when the receiver has refused for a while (which then takes again), starts it
 * again, and counts what comes.
 */
export async function killed(arm: Arm, rig: Rig, alerts: number, moment: Moment): Promise<Killed> {
  const total = alerts * sinks.length
  const receiver = rig.receiver.process
  await arm.store(rig, alerts)
  const refuses = moment === 'while the receiver answered 503'
  receiver.send({ count: total, isKill: true, refuses } satisfies Order)
  await message(receiver, 'ready')
  const half = refuses ? undefined : message(receiver, 'half')
  const first = await arm.start(rig, alerts)
  const fed = first.feed?.()
  if (half !== undefined) await half
  else await Promise.all([fed, sleep(refusalMs)])
  await kill(first.processes, 'SIGKILL')
  first.stop?.()
  receiver.send({ take: true })
  const startMs = performance.now()
  const second = await arm.start(rig, alerts)
  await fed
  let seen = await arrivedAt(rig)
  let lastMs = performance.now()
  while (performance.now() - lastMs < quietMs) {
    await sleep(lookMs)
    const now = await arrivedAt(rig)
    if (now.requests !== seen.requests) lastMs = performance.now()
    seen = now
    // Those that arrive twice come in between, since what was cut off is sent last.
    if (seen.different === total && performance.now() - lastMs > 4 * lookMs) break
  }
  await kill(second.processes, 'SIGKILL')
  second.stop?.()
  return {
    never: total - seen.different,
    again: seen.requests - seen.different,
    seconds: Math.round((lastMs - startMs) / 1_000),
  }
}

export async function arrivedAt({ receiver }: Rig): Promise<Arrived> {
  const told = message<{ arrived: Arrived }>(receiver.process, 'arrived')
  receiver.process.send({ tell: 'arrived' })
  return (await told).arrived
}

export interface KilledArm extends Killed {
  readonly name: string
  readonly moment: Moment
}

export function printKilled(
  results: readonly KilledArm[],
  title: string,
  print: (line: string) => void,
): void {
  print(`\n${title}\n\n| | killed | never arrived | arrived again | last arrival after the new start |`)
  print('|---|---|---|---|---|')
  for (const name of new Set(results.map((each) => each.name)))
    for (const moment of moments) {
      const runs = results.filter((each) => each.name === name && each.moment === moment)
      const all = (key: keyof Killed) => runs.map((run) => run[key]).join(', ')
      print(`| ${name} | ${moment} | ${all('never')} | ${all('again')} | ${all('seconds')} s |`)
    }
}

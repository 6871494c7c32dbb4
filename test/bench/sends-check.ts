import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBare, writeConfig } from './sends/arms.ts'
import { cpuOf, startBridge } from './sends/process.ts'
import { kill, message, startRig } from './sends/rig.ts'
import { median, spread } from './sends/statistics.ts'
import { type Ids, storeBare, storeOurs } from './sends/stored.ts'
import { sinks } from './sends/work.ts'

/**
 * Whether the bridge still sends as fast, beside the libraries alone, as when `sends/baseline.json` was measured: ends with 1
 * when a ratio got worse by more than a third. Both stay up and drain small portions in turn, so that a load of the machine meets
 * both; one stands still while its portion is stored.
 */
const baseline = JSON.parse(
  readFileSync(join(import.meta.dirname, 'sends/baseline.json'), 'utf8'),
) as Readonly<Record<Ratio, number>>
const worstShare = 2 / 3
const portion = 250
/** After this, counted from the start of the program, no round begins. */
const lastRoundMs = 14_000
const roundsMax = 15
/** CPU time is compared from one round on. A rate of fewer rounds than this says more of the machine than of the bridge. */
const roundsForRate = 7

/** Of the bridge to `bare`, less being worse: sends a second, and sends for the same CPU time of the sender and of Redis. */
type Ratio = 'sends' | 'cpu'

interface Side {
  readonly worker: ChildProcess
  readonly store: (ids: Ids) => Promise<void>
}

const startMs = performance.now()
const rig = await startRig()
const { redis, receiver } = rig
const bare: Side = {
  worker: startBare('both', redis.socketPath, receiver.url, portion, 'bare'),
  store: (ids) => storeBare(redis, 'bare', ids),
}
const bridge: Side = {
  worker: startBridge(['--role', 'sender', '--config', writeConfig(rig, 'bridge')]),
  store: (ids) => storeOurs(redis, 'bridge', ids),
}
const sides = [bare, bridge]
const rounds: Record<Ratio, number>[] = []
let stored = 0
try {
  // The first portions pay for the start.
  for (const side of sides) await drain(side)
  do {
    const results = new Map<Side, Drained>()
    for (const side of rounds.length % 2 === 0 ? sides : sides.toReversed())
      results.set(side, await drain(side))
    const [limit, ours] = [results.get(bare), results.get(bridge)]
    if (limit === undefined || ours === undefined) throw new Error('a side was not measured')
    rounds.push({ sends: ours.perSecond / limit.perSecond, cpu: limit.cpuMs / ours.cpuMs })
  } while (rounds.length < roundsMax && performance.now() - startMs < lastRoundMs && !isEnough())
} finally {
  await kill(
    sides.map(({ worker }) => worker),
    'SIGKILL',
  )
  await rig.dispose()
}
const judged = judgedRatios()
const failed = failedRatios()
const seconds = (performance.now() - startMs) / 1_000
print(
  `beside bare BullMQ and undici, ${rounds.length} rounds in ${seconds.toFixed(1)} s: ${say('sends', 'sends a second')}; ${say('cpu', 'sends for the same CPU time')}`,
)
for (const ratio of failed) print(`the ratio of ${ratio} got worse by more than a third`)
process.exit(failed.length === 0 ? 0 : 1)

interface Drained {
  readonly perSecond: number
  readonly cpuMs: number
}

/** Both are judged, and good. */
function isEnough(): boolean {
  return judgedRatios().length === 2 && failedRatios().length === 0
}

function judgedRatios(): readonly Ratio[] {
  return rounds.length < roundsForRate ? ['cpu'] : ['cpu', 'sends']
}

function failedRatios(): readonly Ratio[] {
  return judgedRatios().filter((ratio) => median(of(ratio)) < baseline[ratio] * worstShare)
}

async function drain({ worker, store }: Side): Promise<Drained> {
  worker.kill('SIGSTOP')
  const ids: Ids = [stored + 1, stored + portion]
  stored += portion
  await store(ids)
  receiver.process.send({ count: portion * sinks.length })
  await message(receiver.process, 'ready')
  const told = message<{ perSecond: number }>(receiver.process, 'perSecond')
  const spentMs = () => cpuOf(worker.pid ?? 0) + cpuOf(redis.pid)
  const before = spentMs()
  worker.kill('SIGCONT')
  const { perSecond } = await told
  return { perSecond, cpuMs: spentMs() - before }
}

function of(ratio: Ratio): number[] {
  return rounds.map((each) => each[ratio])
}

function say(ratio: Ratio, words: string): string {
  const [least, most] = spread(of(ratio)).map((each) => each.toFixed(2))
  const judgement = judged.includes(ratio)
    ? `${baseline[ratio]} when measured, at least ${(baseline[ratio] * worstShare).toFixed(2)} is wanted`
    : `not judged by fewer than ${roundsForRate} rounds`
  return `${words} ${median(of(ratio)).toFixed(2)} (${least} to ${most}; ${judgement})`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

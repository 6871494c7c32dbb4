import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWalkState, type WalkChange, type WalkState } from '../../src/store/walk/walk-state.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { TwinState } from './twin.ts'

const server = useRedis()
const dayMs = 86_400_000
const numRuns = process.env['LONG'] === '1' ? 3_000 : 150
const keys = ['1', '2', '3', '4', '5', '6', 'raw-7', 'raw-8']

describe('the twin of the model', () => {
  it('does what the memory in Redis does', async () => {
    const redis = server.client()
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
        expect(await play(realMemory(redis, limits), operations)).toEqual(
          await play(twinMemory(limits), operations),
        )
      }),
      { numRuns },
    )
  })

  it('does so also where rows that are forgotten are still stored', async () => {
    const redis = server.client()
    // What Redis stores compactly is read whole at once.
    await redis.config('SET', 'hash-max-listpack-entries', 0)
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (given) => {
        const operations = given.filter(({ kind }) => kind !== 'open')
        const begin: Operation = { kind: 'open', id: 'a', replaces: '' }
        expect(await play(realMemory(redis, { ...limits, scanned: 1 }), [begin, ...operations])).toEqual(
          await play(twinMemory(limits), [begin, ...operations]),
        )
      }),
      { numRuns },
    )
  })
})

const limits = { seenWindowMs: 2 * dayMs, rowsKept: 3 }

interface Limits {
  readonly seenWindowMs: number
  readonly rowsKept: number
  readonly scanned?: number
}

/** A memory, and the time of its clock. */
interface Timed {
  readonly state: WalkState
  now(): number
  /** Lets the clock go on. */
  pass(ms: number): void
}

/** Near midnight, so that hours are days too. */
const startMs = Date.UTC(2026, 10, 3, 23)

function twinMemory(limits: Limits): Timed {
  let nowMs = startMs
  const state = new TwinState({ ...limits, now: () => nowMs })
  return {
    state,
    now: () => nowMs,
    pass: (ms) => {
      nowMs += ms
    },
  }
}

/** Redis' own clock cannot be moved: its scripts are given another. */
function realMemory(client: ReturnType<typeof server.client>, limits: Limits): Timed {
  let nowMs = startMs
  const at = () => `{'${Math.floor(nowMs / 1_000)}', '${(nowMs % 1_000) * 1_000}'}`
  const redis = Object.create(client, {
    eval: {
      value: (script: string, ...given: [number, ...string[]]) =>
        client.eval(script.replaceAll("redis.call('TIME')", at()), ...given),
    },
  })
  return {
    state: createWalkState({ redis, prefix: freshPrefix(), source: 'main', ...limits }),
    now: () => nowMs,
    pass: (ms) => {
      nowMs += ms
    },
  }
}

type Operation =
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'open'; readonly id: string; readonly replaces: string }
  | {
      readonly kind: 'commit'
      readonly id: string
      readonly behind: number
      /** How far the caller's clock is from that of Redis. */
      readonly skewMs: number
      readonly change: Omit<WalkChange, 'nowMs'>
    }

/** All answers, in turn; times of Redis' clock by how long ago they are. */
async function play({ state, now, pass }: Timed, operations: readonly Operation[]): Promise<unknown[]> {
  const answers: unknown[] = []
  for (const each of operations) {
    // No two changes share a millisecond.
    pass(1_000)
    const { facts, server: _server, ...looked } = await state.look(keys)
    const { createdMs: _now, forgottenMs, ...rest } = facts
    answers.push(looked, rest, forgottenMs, await state.sweep())
    if (each.kind === 'pass') {
      pass(each.ms)
      continue
    }
    if (each.kind === 'open') {
      const scope = { kind: 'since' as const, sinceMs: 5 }
      const { facts: opened, ...memory } = await state.open({ id: each.id, scope, replaces: each.replaces })
      answers.push(memory, opened.scope)
    } else {
      const base = { id: each.id, version: Math.max(0, looked.version - each.behind) }
      answers.push(await state.commit(base, { ...each.change, nowMs: now() + each.skewMs }))
    }
  }
  return answers
}

const run = fc.integer({ min: 0, max: 3 })
const someKeys = fc.uniqueArray(fc.constantFrom(...keys), { maxLength: 4 })
const stretch = fc.record({
  run: fc.integer({ min: 1, max: 3 }),
  frontier: fc.constantFrom(...keys),
  end: fc.nat(20),
  total: fc.nat(20),
})

const change: fc.Arbitrary<Omit<WalkChange, 'nowMs'>> = fc
  .record({
    mark: someKeys,
    shown: someKeys,
    rowsBecome: fc.oneof(run, fc.constant('covered' as const)),
    joins: fc.array(fc.record({ from: run, to: run }), { maxLength: 1 }),
    finished: fc.array(run, { maxLength: 2 }),
    stretches: fc.option(fc.uniqueArray(stretch, { maxLength: 2, selector: (each) => each.run }), {
      nil: undefined,
    }),
    explains: fc.boolean(),
    passedOver: fc.nat(3),
    unrouted: fc.nat(3),
    complete: fc.option(fc.record({ atMs: fc.nat(99), total: fc.nat(20) }), { nil: undefined }),
    sweep: fc.option(
      fc.record({
        page: fc.nat(9),
        perPage: fc.constant(100),
        total: fc.nat(99),
        depth: fc.nat(99),
        atMs: fc.nat(99).map((ms) => ms + 1),
        roundAtMs: fc.constant(null),
      }),
      { nil: undefined },
    ),
  })
  .map((some) => ({
    ...some,
    readable: some.shown.filter((key) => key.startsWith('raw')),
    quarantine: some.mark
      .filter((key) => key.startsWith('raw'))
      .map((key) => ({ key, reason: 'id', raw: '{}', atMs: 1 })),
  }))

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.constantFrom(0.02 * dayMs, 0.45 * dayMs, 1.3 * dayMs, 3.2 * dayMs, 40 * dayMs),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('open' as const),
      id: fc.constantFrom('a', 'b'),
      replaces: fc.constantFrom('', 'a', 'b'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('commit' as const),
      id: fc.constantFrom('a', 'a', 'a', 'b'),
      behind: fc.constantFrom(0, 0, 0, 1),
      skewMs: fc.constantFrom(0, 0, 0, 0.9 * dayMs, -1.1 * dayMs),
      change,
    }),
  },
)

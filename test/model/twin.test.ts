import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWalkState, type WalkChange, type WalkState } from '../../src/store/walk-state.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { TwinState } from './twin.ts'

const server = useRedis()
const numRuns = process.env['LONG'] === '1' ? 3_000 : 150
const keys = ['1', '2', '3', '4', '5', '6', 'raw-7', 'raw-8']

describe('the twin of the model', () => {
  it('does what the memory in Redis does', async () => {
    const redis = server.client()
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
        const options = { redis, prefix: freshPrefix(), source: 'main', seenWindowMs: 86_400_000 }
        const real = createWalkState(options)
        expect(await play(real, operations)).toEqual(await play(new TwinState(), operations))
      }),
      { numRuns },
    )
  })
})

type Operation =
  | { readonly kind: 'open'; readonly id: string; readonly replaces: string }
  | { readonly kind: 'commit'; readonly id: string; readonly behind: number; readonly change: WalkChange }

/** All answers, in turn; times of Redis' clock left out. */
async function play(state: WalkState, operations: readonly Operation[]): Promise<unknown[]> {
  const answers: unknown[] = []
  for (const each of operations) {
    const { facts, ...looked } = await state.look(keys)
    const { createdMs: _now, ...rest } = facts
    answers.push(looked, rest, await state.sweep())
    if (each.kind === 'open') {
      const scope = { kind: 'since' as const, sinceMs: 5 }
      const { facts: opened, ...memory } = await state.open({ id: each.id, scope, replaces: each.replaces })
      answers.push(memory, opened.scope)
    } else {
      const base = { id: each.id, version: Math.max(0, looked.version - each.behind) }
      answers.push(await state.commit(base, each.change))
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

const change: fc.Arbitrary<WalkChange> = fc
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
      change,
    }),
  },
)

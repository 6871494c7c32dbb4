import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { brokenBuilds, brokenWideBuilds } from './broken.ts'
import { found } from './found.ts'
import { type History, histories, plainHistories, wideHistories } from './history.ts'
import { type Broken, live } from './run.ts'

const long = process.env['LONG'] === '1'
const numRuns = Number(process.env['RUNS'] ?? (long ? 200_000 : 4_000))
/** A machine that is busy lives fewer of them; the long form lives all. */
const patience = long ? {} : { interruptAfterTimeLimit: 6_000 }
/** The short form lives the same histories each time; the long form others. */
const seed = Number(process.env['SEED'] ?? (long ? Date.now() % 2 ** 31 : 1))

describe('whatever happens to the feed, to the process and to Redis', () => {
  it('every alert in scope is enqueued once things calm down, and no other', async () => {
    process.stdout.write(`model: ${numRuns} histories; the same again with SEED=${seed}\n`)
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        expect(await outcome(history)).toEqual(asPromised)
      }),
      { seed, numRuns, ...patience },
    )
  })
})

describe('a history that once did harm', () => {
  it.each(found)('%s', async (_what, history) => {
    expect(await outcome(history)).toEqual(asPromised)
  })
})

describe('the model catches a build that', () => {
  it.each([
    ...Object.entries(brokenBuilds).map((each) => [...each, plainHistories] as const),
    ...Object.entries(brokenWideBuilds).map((each) => [...each, wideHistories] as const),
  ])('%s', async (_name, broken, some) => {
    const property = fc.asyncProperty(some, async (history) => {
      const { lost, strange, doubled } = await outcome(history, broken)
      return lost.length + strange.length + doubled.length === 0
    })
    // Always the same histories: whether they catch it is no matter of luck.
    const { failed } = await fc.check(property, {
      seed: broken.seed ?? 1,
      numRuns: 20_000,
      endOnFailure: true,
    })
    expect(failed).toBe(true)
  })
})

const asPromised = { lost: [], strange: [], doubled: [], repeats: 0, unfinished: false }

async function outcome(history: History, broken: Broken = {}) {
  const { calmPages: _, ...rest } = await live(history, broken)
  return rest
}

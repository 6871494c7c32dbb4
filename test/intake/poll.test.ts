import { describe, expect, it } from 'vitest'
import { createPollMemory, type PollOptions, runPoll } from '../../src/intake/poll.ts'
import { createWalkState } from '../../src/store/walk-state.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { type Bench, benchStartMs, createBench } from './bench.ts'

const server = useRedis()
const minute = 60_000

function setUp(startFrom: PollOptions['startFrom'] = 'now') {
  const redis = server.client()
  const state = createWalkState({
    redis,
    prefix: freshPrefix(),
    source: 'main',
    seenWindowMs: 30 * 86_400_000,
  })
  const bench = createBench(state)
  const memory = createPollMemory(bench.deps.clock)
  const poll = (options: Partial<PollOptions> = {}) =>
    runPoll(bench.deps, { source: 'main', startFrom, memory, ...options })
  return { redis, state, bench, memory, poll }
}

function history(bench: Bench, count: number): void {
  bench.feed.add(count, (index) => benchStartMs - (count - index) * minute)
}

describe('a poll', () => {
  it('costs one unit, with or without news', async () => {
    const { bench, poll } = setUp()
    history(bench, 250)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, passedOver: 100, reason: 'start_bound' })
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, reason: 'caught_up', finished: true })
    bench.feed.add(37, benchStartMs + minute)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 37, reason: 'caught_up', finished: true })
    expect(bench.queues.ids()).toEqual(Array.from({ length: 37 }, (_, index) => 251 + index))
  })
})

describe('a find of more than a page', () => {
  it.each(Array.from({ length: 20 }, (_, index) => index + 1))('of %i full pages', async (pages) => {
    const { bench, poll } = setUp()
    history(bench, 250)
    await poll()
    bench.feed.add(pages * 100, benchStartMs + minute)
    const result = await poll()
    expect(result).toMatchObject({ newAlerts: pages * 100, finished: true })
    expect(result.pages).toBe(pages + 1)
    expect(bench.queues.jobs.size).toBe(pages * 100)
  })
})

describe('startFrom', () => {
  it('beginning takes everything', async () => {
    const { bench, poll } = setUp('beginning')
    history(bench, 250)
    expect(await poll()).toMatchObject({ pages: 3, newAlerts: 250, reason: 'end_of_feed' })
  })

  it('an instant takes what was fired since', async () => {
    const { bench, poll } = setUp({ sinceMs: benchStartMs - 150 * minute })
    history(bench, 450)
    expect(await poll()).toMatchObject({ pages: 2, newAlerts: 150, reason: 'start_bound' })
  })
})

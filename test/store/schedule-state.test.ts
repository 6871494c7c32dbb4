import { describe, expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { createScheduleState } from '../../src/store/source/schedule-state.ts'
import { createSourceStatus, type PollerStatus } from '../../src/store/source/source-status.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()

describe('what a schedule has learned', () => {
  it('comes back as it was saved', async () => {
    const { state } = given()
    expect(await state.load()).toBeUndefined()
    const snapshot = { v: 3, profile: [0.5, 1e-9], note: 'فولاد' }
    await state.save(snapshot)
    expect(await state.load()).toEqual(snapshot)
  })

  it.each(['not json', '[]', '{"v":2,"snapshot":{}}'])(
    'is told and forgotten when it reads %s',
    async (text) => {
      const { state, redis, keys, captured } = given()
      await redis.set(keys.profile, text)
      expect(await state.load()).toBeUndefined()
      expect(captured.lines).toMatchObject([{ level: 'warn', source: 'main' }])
    },
  )
})

describe('what a poller tells of itself', () => {
  const told: PollerStatus = {
    v: 1,
    source: 'main',
    state: 'waiting',
    reason: 'the plan',
    sinceMs: 1,
    lastPollAtMs: 2,
    lastOkAtMs: null,
    nextPollAtMs: 3,
    nextReason: 'expected',
    unitsUsed: 4,
    unitsPerDay: 5,
    dayStartMs: 5,
    resetsAtMs: 6,
    lesson: null,
    plan: { learnedFrom: 7, firing: 'each minute', announced: null, hotUntilMs: 8 },
    doubt: null,
    rules: null,
    behind: false,
    lastCompleteWalkAtMs: null,
    lastError: { atMs: 7, code: 'timeout', message: 'no answer' },
    failingSinceMs: null,
  }

  it('is what other replicas read, for a week', async () => {
    const { status, redis, keys } = given()
    expect(await status.load()).toBeUndefined()
    await status.save(told)
    expect(await status.load()).toEqual({
      ...told,
      by: expect.stringMatching(/, process \d+, running since /),
    })
    expect(await redis.pttl(keys.status)).toBeGreaterThan(6 * 86_400_000)
  })

  it.each(['not json', '{"v":2}'])('is unknown when another version wrote %s', async (text) => {
    const { status, redis, keys } = given()
    await redis.set(keys.status, text)
    expect(await status.load()).toBeUndefined()
  })
})

function given() {
  const redis = server.client()
  const prefix = freshPrefix()
  const captured = captureLog()
  const place = { redis, prefix, source: 'main' }
  return {
    redis,
    captured,
    keys: sourceKeys(prefix, 'main'),
    state: createScheduleState({ ...place, log: captured.log }),
    status: createSourceStatus(place),
  }
}

import { describe, expect, it } from 'vitest'
import { createOrphans } from '../../src/delivery/orphans/orphans.ts'
import { createQueues } from '../../src/delivery/queue/queues.ts'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createNameStore } from '../../src/store/source/names.ts'
import { useRedis } from '../support/redis.ts'
import { endWaiting, jobs, limitedUser, refusedInScript, rig } from './rig.ts'

/**
 * What operators do to an alert while Redis refuses one command, in the middle of a script: the same done again leaves what it leaves
 * where nothing is refused. Nothing is lost, and no job stays that is in no list: it would be found there, and sent.
 */
const server = useRedis()
const day = 86_400_000

/** One alert of the sink `gone`, and what an operator's Redis user does to it. */
async function alertOf(user: Awaited<ReturnType<typeof limitedUser>>, isDead: boolean) {
  const own = rig(server, ['gone', 'next'])
  await own.queues.enqueue(jobs('gone', 1, 1))
  if (isDead) {
    await endWaiting(own, 'gone')
    await own.redis.rpush(own.queues.queue('gone').toKey('main.1:logs'), '{"number":1}')
  }
  const retention = { ageMs: day, count: 10 }
  const optionsOf = (sinks: string[]) => ({
    queues: createQueues({ ...own, redis: user.redis, sinks, enqueueTimeoutMs: 1_000 }),
    ...{ targets: new Map(sinks.map((sink) => [sink, [undefined]])), clock: systemClock },
    ...{ prefix: own.prefix, retention, names: createNameStore(own.redis, own.prefix) },
  })
  return {
    orphans: createOrphans(optionsOf(['next'])),
    letters: createDeadLetters(optionsOf(['gone'])),
    /** The keys of the alert, and the lists that have it. */
    async where() {
      const keys = await own.redis.keys(`*${own.prefix}*:main.1*`)
      const counts = ['gone', 'next'].map((sink) => own.queues.queue(sink).getJobCounts())
      return {
        keys: keys.map((key) => key.replace(/.*}:[^:]*/, '')).sort(),
        counts: await Promise.all(counts),
      }
    },
  }
}

type Alert = Awaited<ReturnType<typeof alertOf>>
const takesOut = ['zrem', 'del', 'zadd']
const operations: Record<
  string,
  { refused: string[]; isDead: boolean; act(alert: Alert): Promise<unknown> }
> = {
  'moving a dead letter': {
    refused: [...takesOut, 'rpush', 'hset'],
    isDead: true,
    act: ({ orphans }) => orphans.move('gone', { to: 'next' }),
  },
  'moving what waits': {
    refused: ['lrem', 'del', 'zadd', 'lpush', 'hset'],
    isDead: false,
    act: ({ orphans }) => orphans.move('gone', { to: 'next' }),
  },
  'dropping what waits': {
    refused: ['lrem', 'del', 'zadd', 'pexpire'],
    isDead: false,
    act: ({ orphans }) => orphans.drop('gone', {}),
  },
  'dropping a dead letter': {
    refused: [...takesOut, 'pexpire'],
    isDead: true,
    act: ({ letters }) => letters.drop({ limit: 10 }),
  },
}

describe.each(Object.entries(operations))('%s', (_name, { refused, isDead, act }) => {
  it.each(refused)('while Redis refuses %s is done by the next try', async (command) => {
    const user = await limitedUser(server, 'commands')
    const unrefused = await alertOf(user, isDead)
    await act(unrefused)
    const alert = await alertOf(user, isDead)
    await user.may(`-${command}`)
    await expect(act(alert)).rejects.toThrow(refusedInScript)
    await user.may('+@all')
    await act(alert)
    expect(await alert.where()).toEqual(await unrefused.where())
  })
})

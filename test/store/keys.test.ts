import { describe, expect, it } from 'vitest'
import { contextBurstKey, contextKeys } from '../../src/store/context-keys.ts'
import {
  leaseKey,
  namesFoundKey,
  noticedKey,
  noticeKey,
  noticesKey,
  queuePrefix,
  servedSinksKey,
  sinkNamesKey,
  sourceKeys,
  sourceNamesKey,
  stateFormatKey,
  throttledKey,
  throttleKey,
} from '../../src/store/keys.ts'
import {
  auditKey,
  firedAlertsKey,
  idempotencyKey,
  pausesKey,
  silencesKey,
  sinkQuartersKey,
} from '../../src/store/operator-keys.ts'
import { useRedis } from '../support/redis.ts'

const redis = useRedis({ flags: ['--cluster-enabled', 'yes'] })

describe('keys', () => {
  it('share one slot of a cluster, queues included, so that they can only be lost together', async () => {
    const client = redis.client()
    const slots = await Promise.all(
      [...allKeys('p', 'main'), `${queuePrefix('p')}:ops:wait`].map((key) => client.cluster('KEYSLOT', key)),
    )
    expect(new Set(slots).size).toBe(1)
  })

  it('are all different, between sources and sinks of one name too', () => {
    const keys = [...allKeys('p', 'main'), ...allKeys('p', 'second'), ...allKeys('q', 'main')]
    expect(new Set(keys).size).toBe(keys.length)
  })
})

function allKeys(prefix: string, name: string): string[] {
  const { units, ...source } = sourceKeys(prefix, name)
  return [
    ...Object.values(source),
    units('2026-11-21'),
    noticeKey(prefix, name),
    noticedKey(prefix, name),
    ...Object.values({
      ...contextKeys(prefix, name, 'account'),
      lockOf: contextKeys(prefix, name, 'account').lockOf('price *'),
    }),
    contextBurstKey(prefix, name, undefined),
    contextBurstKey(prefix, 'main', name),
    sinkQuartersKey(prefix, name),
    leaseKey(prefix, name),
    throttleKey(prefix, name),
    throttledKey(prefix, name, `${name}.1`),
    idempotencyKey(prefix, name),
    ...(name === 'main'
      ? [
          noticesKey,
          silencesKey,
          auditKey,
          firedAlertsKey,
          pausesKey,
          sinkNamesKey,
          sourceNamesKey,
          namesFoundKey,
          servedSinksKey,
          stateFormatKey,
        ].map((key) => key(prefix))
      : []),
  ]
}

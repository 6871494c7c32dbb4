import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { queuePrefix } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { bridgeConfig, impatient, leftToSend, readiness } from '../support/bridge.ts'
import { type ClusterNode, nodeTimeoutMs, type RedisCluster, startCluster } from '../support/cluster.ts'
import { failureRow } from '../support/failure-row.ts'
import {
  clean,
  hasAll,
  judge,
  logOf,
  type Shown,
  type SinkLog,
  sentAgain,
  showing,
} from '../support/oracle.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix } from '../support/redis.ts'
import { ownRedis, pass } from '../support/redis-rig.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/**
 * A Redis Cluster under a bridge, with real nodes: three masters, a replica each, called dead after two seconds. All that
 * the bridge keeps lies in one slot, so it is the master of that slot that every test is about.
 */

const long = process.env['LONG'] === '1'
const goesOnMsMax = 15_000
/** What was acknowledged so shortly before its master died may not have reached the replica. */
const unreplicatedMsMax = 500
/** No receiver hangs here: with a limit of 3 s, what a busy machine answers late is sent, and taken, twice. */
const withoutHanging = impatient.replace('timeout: 3s, ', '')
let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1 })
})
afterAll(() => cluster?.dispose())

describe('a node that comes back at its address', () => {
  it('before the others call it dead is used again at once', { timeout: 60_000 }, async () => {
    const row = failureRow('A node of its cluster restarts at its address')
    const { busy, text, prefix } = await rig(cluster)
    await startApp(text)
    await busy.flows()
    const owner = await cluster.ownerOf(prefix)
    await owner.server.kill9()
    await owner.server.start()
    await row.heals('10 s after its return', await busy.goesOn())
    await busy.ends()
    await row.kept('everything', () => expect(judge(busy.shown, busy.log)).toEqual(clean))
    await row.twice('nothing', () => expect(sentAgain(busy.hook)).toEqual([]))
    expect(await cluster.ownerOf(prefix)).toBe(owner)
  })

  it('is used again where it is the only one', { timeout: 120_000 }, async () => {
    const row = failureRow('A node of its cluster restarts at its address')
    const single = await startCluster({ masters: 1, replicas: 0 })
    onTestFinished(() => single.dispose())
    const { busy, text } = await rig(single)
    await startApp(text)
    await busy.flows()
    for (const { server } of single.nodes) await server.kill9()
    await pass(long ? 40_000 : 1_000)
    await single.mend()
    await row.heals('10 s after its return', await busy.goesOn())
    await busy.ends()
    await row.kept('everything', () => expect(judge(busy.shown, busy.log)).toEqual(clean))
    await row.twice('nothing', () => expect(sentAgain(busy.hook)).toEqual([]))
  })
})

it('a slot that moves to another master under traffic, for a user of the least rights: sends go on, nothing lost, nothing twice', {
  timeout: 120_000,
}, async () => {
  const row = failureRow('A node of its cluster restarts at its address')
  const { busy, text, prefix } = await rig(cluster)
  const readme = readFileSync(join(import.meta.dirname, '../../config/README.md'), 'utf8')
  const [, rights = ''] = /^ACL SETUSER bridge on >PASSWORD (.+)$/m.exec(readme) ?? []
  const [, more = ''] = /^In a cluster also `(.+?)`/m.exec(readme) ?? []
  const granted = `${rights.replace('alert-bridge', prefix)} ${more}`.split(' ')
  for (const { redis } of cluster.nodes) {
    await redis.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', '>pw', ...granted)
    await redis.call('ACL', 'LOG', 'RESET')
  }
  await startApp(text.replace('redis: { ', 'redis: { username: bridge, password: pw, '))
  await busy.flows()
  await cluster.moveSlot(prefix, { keysAtOnce: 5, pauseMs: long ? 2_000 : 100 })
  const tookMs = await busy.goesOn()
  await row.heals('or after the move', () => expect(tookMs).toBeLessThan(10_000))
  await busy.ends()
  await row.kept('everything', () => expect(judge(busy.shown, busy.log)).toEqual(clean))
  await row.twice('nothing', () => expect(sentAgain(busy.hook)).toEqual([]))
  const refused = await Promise.all(cluster.nodes.map(({ redis }) => redis.call('ACL', 'LOG')))
  // READONLY is for reads from replicas, of which there are none; the other is what the driver says of itself to a newer Redis.
  const objects = (refused as string[][][]).flatMap((log) =>
    log.map((entry) => entry[entry.indexOf('object') + 1]),
  )
  expect(objects.filter((object) => !/^(readonly|client\|setinfo)$/.test(object ?? ''))).toEqual([])
})

describe('a cluster whose master of the queues dies', () => {
  it('under a bridge that sends: a busy sink and an idle one go on within 15 s, nothing lost, nothing twice', {
    timeout: 90_000,
  }, async () => {
    const row = failureRow('The master of its slot dies in a cluster')
    const { busy, idle, text, prefix, left } = await rig(cluster)
    const { url } = await startApp(text)
    idle.shown.fire()
    await busy.flows()
    await until('the idle one has had one', () => hasAll(idle.shown, idle.log))
    const owner = await cluster.ownerOf(prefix)
    const replica = await cluster.replicaOf(owner)
    await cutReplica(owner)
    await until(
      'some are delivered of which the replica has no job',
      async () => busy.log.taken.length > (await jobsIn(replica, prefix)) + 5,
    )
    const delivered = busy.log.taken.length
    await owner.server.kill9()
    const killedMs = performance.now()
    const known = await jobsIn(replica, prefix)
    const [, electedMs] = await Promise.all([
      busy.goesOn(),
      until('a replica takes over', async () => (await cluster.ownerOf(prefix)) !== owner, goesOnMsMax).then(
        () => performance.now() - killedMs,
      ),
    ])
    await row.heals('10 s after another is the master', performance.now() - killedMs - electedMs)
    await row.heals(
      'the nodes elect one once it was away for `cluster-node-timeout`, by default 15 s',
      async () => {
        expect(electedMs).toBeGreaterThan(nodeTimeoutMs / 2)
        const single = await ownRedis()
        expect(await single.client().config('GET', 'cluster-node-timeout')).toContain('15000')
      },
    )
    idle.shown.fire(3)
    await until('the idle one goes on', () => hasAll(idle.shown, idle.log), goesOnMsMax)
    await busy.ends()
    await until('nothing is left to send', async () => (await left()) === 0, 40_000)
    await until('ready again', async () => (await readiness(url)) === 'ok')
    await row.kept('what had reached the replica', () => expect(judge(idle.shown, idle.log)).toEqual(clean))
    await row.kept('what had not is read from the feed again', () => {
      expect(known).toBeLessThan(delivered)
      expect(judge(busy.shown, busy.log)).toEqual(clean)
    })
    await row.twice('nothing while the same process lives', () =>
      expect([...sentAgain(busy.hook), ...sentAgain(idle.hook)]).toEqual([]),
    )
  })

  it('under two replicas of the bridge: only what was delivered in the lost span is repeated', {
    timeout: 90_000,
  }, async () => {
    const row = failureRow('The master of its slot dies in a cluster')
    const { busy, text, prefix, left } = await rig(cluster)
    await startApp(text)
    await startApp(text)
    await busy.flows()
    const owner = await cluster.ownerOf(prefix)
    const sinceMs = performance.now() - unreplicatedMsMax
    await cutReplica(owner)
    const before = busy.log.taken.length
    await until('the next are delivered', () => busy.log.taken.length > before + 10)
    const shownBefore = new Set(busy.shown.ids.keys())
    await owner.server.kill9()
    const killedMs = performance.now()
    const another = async () => (await cluster.ownerOf(prefix)) !== owner
    const [goesOnMs, electedMs] = await Promise.all([
      busy.goesOn(),
      until('a replica takes over', another, goesOnMsMax).then(() => performance.now() - killedMs),
    ])
    await row.heals('10 s after another is the master', goesOnMs - electedMs)
    const lost = busy.takenSince(sinceMs).filter((mark) => shownBefore.has(mark))
    await busy.ends()
    await until('nothing is left to send', async () => (await left()) === 0, 40_000)
    const cutOff = new Map(lost.map((mark) => [mark, 1]))
    const { doubled, ...rest } = judge(busy.shown, busy.log, { cutOff })
    await row.kept('what had not is read from the feed again', () =>
      expect({ ...rest, doubled: [] }).toEqual(clean),
    )
    // Each counts from when the receiver has it, some time before it answers.
    await row.twice(
      'with several replicas of the bridge, what was delivered in the lost span or was on its way at its end',
      () => expect(doubled).toEqual([]),
    )
  })

  it('and the bridge is killed with it: the next one goes on, and repeats only what was under way', {
    timeout: 120_000,
  }, async () => {
    const row = failureRow('The same, and the bridge is killed with it')
    const { busy, text, prefix, left } = await rig(cluster)
    const config = writeConfig(text)
    const first = startProgram(['run', '--config', config])
    await first.logged('started', 40_000)
    await busy.flows()
    const owner = await cluster.ownerOf(prefix)
    const killedMs = performance.now()
    first.kill('SIGKILL')
    await owner.server.kill9()
    await first.ended()
    // What it had sent may still lie in the buffers of its connections.
    await busy.hook.untilAlone()
    const underWay = new Map(busy.takenSince(killedMs - unreplicatedMsMax).map((mark) => [mark, 1]))
    const shownAtKill = [...busy.shown.ids.keys()]
    startProgram(['run', '--config', config])
    await until(
      'what waited and what was being sent is delivered',
      () => shownAtKill.every((mark) => busy.log.taken.includes(mark)),
      60_000,
    )
    await busy.goesOn(40_000)
    await row.heals(
      '30 s for polling, for what waits and for what was being sent',
      performance.now() - killedMs,
    )
    await busy.ends()
    await until('nothing is left to send', async () => (await left()) === 0, 40_000)
    const { doubled, ...rest } = judge(busy.shown, busy.log, { cutOff: underWay })
    await row.kept('what had reached the replica; what had not is read from the feed again', () =>
      expect({ ...rest, doubled: [] }).toEqual(clean),
    )
    await row.twice('what was delivered in the lost span, and what it was sending', () =>
      expect(doubled).toEqual([]),
    )
  })
})

const describeLong = long ? describe : () => {}
describeLong('a cluster, for longer', () => {
  it('whose master of the queues freezes: the next one is asked within 15 s', {
    timeout: 120_000,
  }, async () => {
    const { busy, text, prefix } = await rig(cluster)
    await startApp(text)
    await busy.flows()
    const owner = await cluster.ownerOf(prefix)
    owner.server.freeze()
    await busy.goesOn()
    owner.server.thaw()
    await pass(5_000)
    await busy.ends()
    expect(judge(busy.shown, busy.log)).toEqual(clean)
  })

  it('of which the config names only the node that dies: what is known of the others is enough', {
    timeout: 120_000,
  }, async () => {
    const { busy, idle, textFor, prefix } = await rig(cluster)
    const owner = await cluster.ownerOf(prefix)
    await startApp(textFor([`redis://127.0.0.1:${owner.port}`, 'redis://no-such-node.invalid:6379']))
    await busy.flows()
    await owner.server.kill9()
    await busy.goesOn()
    await pass(15_000)
    idle.shown.fire(3)
    await until('the idle one goes on', () => hasAll(idle.shown, idle.log), goesOnMsMax)
    await busy.ends()
    expect(judge(busy.shown, busy.log)).toEqual(clean)
  })

  it('that is away as a whole for a minute: everything goes on after its return', {
    timeout: 240_000,
  }, async () => {
    const { busy, idle, text } = await rig(cluster)
    await startApp(text)
    await busy.flows()
    await Promise.all(cluster.nodes.map(({ server }) => server.kill9()))
    await pass(60_000)
    await cluster.mend()
    await busy.goesOn()
    idle.shown.fire(3)
    await until('the idle one goes on', () => hasAll(idle.shown, idle.log), goesOnMsMax)
    await busy.ends()
    expect(judge(busy.shown, busy.log)).toEqual(clean)
  })
})

/** A feed that shows alerts of two kinds, a sink for each: one that gets ten a second, and one that gets few. */
async function rig(redis: RedisCluster) {
  await redis.mend()
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const [hook, quiet] = [await startWebhookReceiver(), await startWebhookReceiver()]
  const prefix = freshPrefix()
  const of = (kind: string) => showing({ fire: (fields) => sandbox.fire({ ...fields, kind }) })
  const textFor = (nodes: readonly string[]) =>
    bridgeConfig({
      redis: { cluster: nodes },
      prefix,
      feed: sandbox.url,
      sinks: { busy: hook.url, idle: quiet.url },
      sink: withoutHanging,
      routes: '[{ match: { kind: price }, sinks: [busy] }, { match: { kind: screen }, sinks: [idle] }]',
    })
  const idle = of('screen')
  return {
    prefix,
    textFor,
    text: textFor(redis.urls),
    busy: { hook, ...traffic(of('price'), logOf('busy', hook, { status: 204, afterMs: 15 })) },
    idle: { hook: quiet, shown: idle, log: logOf('idle', quiet, { status: 204 }) },
    left: async () => leftToSend((await redis.ownerOf(prefix)).redis, prefix, ['busy', 'idle']),
  }
}

function traffic(shown: Shown, log: SinkLog) {
  const takenAtMs: number[] = []
  const look = setInterval(() => {
    while (takenAtMs.length < log.taken.length) takenAtMs.push(performance.now())
  }, 10)
  const steady = setInterval(() => shown.fire(), 100)
  const stop = () => {
    clearInterval(steady)
    clearInterval(look)
  }
  onTestFinished(stop)
  return {
    shown,
    log,
    flows: () => until('alerts are delivered', () => log.taken.length > 5),
    /** An alert that fires from now on arrives; resolves to how long that took. */
    async goesOn(limitMs: number = goesOnMsMax) {
      const before = new Set(shown.ids.keys())
      const startMs = performance.now()
      await until('sends go on', () => log.taken.some((mark) => !before.has(mark)), limitMs)
      return performance.now() - startMs
    },
    takenSince(sinceMs: number) {
      return log.taken.filter((_, index) => (takenAtMs[index] ?? Infinity) > sinceMs)
    },
    async ends() {
      stop()
      await until('everything arrives', () => hasAll(shown, log), 40_000)
    },
  }
}

/** From now on nothing reaches a replica of this master; who is connected already stays so. */
async function cutReplica({ redis }: ClusterNode): Promise<void> {
  await redis.config('SET', 'requirepass', 'unknown-to-the-replica')
  await redis.call('CLIENT', 'KILL', 'TYPE', 'replica')
}

async function jobsIn({ redis }: ClusterNode, prefix: string): Promise<number> {
  const keys = await redis.keys(`${queuePrefix(prefix)}:busy:main.*`)
  return keys.filter((key) => /main\.\d+$/.test(key)).length
}

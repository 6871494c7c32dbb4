import type { Redis } from 'ioredis'
import { freePort, tcp } from './ports.ts'
import { isBefore7, type RedisServer, startRedis } from './redis.ts'
import { until } from './until.ts'

/** A real Redis Cluster: masters that share the slots, each with replicas of its own, as processes of the test. */
export interface RedisCluster {
  readonly nodes: readonly ClusterNode[]
  /** `redis://…` of every node, as the config takes it. */
  readonly urls: readonly string[]
  /** The node that answers for the slot of this prefix, as the others see it. */
  ownerOf(prefix: string): Promise<ClusterNode>
  replicaOf(master: ClusterNode): Promise<ClusterNode>
  /** Starts what does not run; resolves when every slot is served, every replica is in step, and every node says so. */
  mend(): Promise<void>
  /** Moves the slot of this prefix to another master as an operator would, key by key. */
  moveSlot(prefix: string, pace: { keysAtOnce: number; pauseMs: number }): Promise<void>
  dispose(): Promise<void>
}

export interface ClusterNode {
  readonly server: RedisServer
  readonly port: number
  /** A connection of its own over the node's unix socket, so that no redirection hides what the node says. */
  readonly redis: Redis
  id(): Promise<string>
}

const slots = 16_384
/** The cluster calls a node dead after this, and elects a replica within about as much. */
export const nodeTimeoutMs = 2_000
const readyMs = 30_000
const startsMax = 3

export async function startCluster(size: { masters: number; replicas: number }): Promise<RedisCluster> {
  const count = size.masters * (1 + size.replicas)
  const nodes = await Promise.all(Array.from({ length: count }, () => startNode()))
  const masters = nodes.slice(0, size.masters)
  const [first] = nodes
  if (!first) throw new Error('a cluster has nodes')
  for (const [index, { redis }] of masters.entries()) {
    const from = Math.ceil((slots / size.masters) * index)
    const to = Math.ceil((slots / size.masters) * (index + 1)) - 1
    await giveSlots(redis, from, to)
  }
  for (const [index, { redis }] of nodes.entries()) await redis.cluster('SET-CONFIG-EPOCH', index + 1)
  for (const { port, bus } of nodes.slice(1))
    await first.redis.call('CLUSTER', 'MEET', '127.0.0.1', port, bus)
  await until(
    'all nodes know each other',
    async () => {
      const known = await Promise.all(nodes.map(({ redis }) => redis.cluster('INFO')))
      return known.every((info) => String(info).includes(`cluster_known_nodes:${count}`))
    },
    readyMs,
  )
  for (const [index, { redis }] of nodes.slice(size.masters).entries()) {
    const master = masters[index % size.masters]
    if (master) await redis.call('CLUSTER', 'REPLICATE', await master.id())
  }
  await untilWhole(nodes)
  return {
    nodes,
    urls: nodes.map(({ port }) => `redis://127.0.0.1:${port}`),
    ownerOf: (prefix) => ownerOf(nodes, `{${prefix}}`),
    replicaOf: (master) => replicaOf(nodes, master),
    mend: () => mend(nodes),
    moveSlot: (prefix, pace) => moveSlot(nodes, `{${prefix}}`, pace),
    async dispose() {
      await Promise.all(nodes.map(({ server }) => server.dispose()))
    },
  }
}

async function mend(nodes: readonly ClusterNode[]): Promise<void> {
  await Promise.all(nodes.map(async ({ server }) => server.running || server.start()))
  await untilWhole(nodes)
}

async function untilWhole(nodes: readonly ClusterNode[]): Promise<void> {
  await until(
    'the cluster is whole',
    async () => (await Promise.all(nodes.map(isWhole))).every(Boolean),
    readyMs,
  )
}

async function moveSlot(
  nodes: readonly ClusterNode[],
  key: string,
  { keysAtOnce, pauseMs }: { keysAtOnce: number; pauseMs: number },
): Promise<void> {
  const from = await ownerOf(nodes, key)
  const masters = await Promise.all(nodes.map(async (node) => ((await isMaster(node)) ? [node] : [])))
  const to = masters.flat().find((node) => node !== from)
  if (!to) throw new Error('there is no other master')
  const slot = await from.redis.cluster('KEYSLOT', key)
  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', await from.id())
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', await to.id())
  for (;;) {
    const keys = (await from.redis.call('CLUSTER', 'GETKEYSINSLOT', slot, keysAtOnce)) as string[]
    if (keys.length === 0) break
    await from.redis.migrate('127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  for (const { redis } of [to, from]) await redis.cluster('SETSLOT', slot, 'NODE', await to.id())
}

async function isMaster({ redis }: ClusterNode): Promise<boolean> {
  return (await redis.info('replication')).includes('role:master')
}

type StartedNode = ClusterNode & { readonly bus: number }

/** A port that was free may be taken before the node has it: then with others. */
async function startNode(): Promise<StartedNode> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await tryNode()
    } catch (error) {
      if (attempt === startsMax) throw error
    }
  }
}

async function tryNode(): Promise<StartedNode> {
  const { port, bus, flags: bare } = await clusterPorts()
  const flags = [
    ...[...bare, '--cluster-announce-ip', '127.0.0.1'],
    ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-replica-validity-factor', '0'],
    ...['--repl-diskless-sync-delay', '0'],
    ...tcp(port),
  ]
  const server = await startRedis({ aof: true, flags })
  const redis = server.client()
  return { server, port, bus, redis, id: async () => String(await redis.cluster('MYID')) }
}

/** Ports that are free now, and the flags that make a server a node with this bus. Before version 7 it is 10,000 above the port. */
export async function clusterPorts(): Promise<{ port: number; bus: number; flags: string[] }> {
  const [port, enabled] = [await freePort(), ['--cluster-enabled', 'yes']]
  if (isBefore7()) return { port, bus: port + 10_000, flags: enabled }
  const bus = await freePort()
  return { port, bus, flags: [...enabled, '--cluster-port', String(bus)] }
}

/** Redis before version 7 takes no ranges. */
export async function giveSlots(node: Redis, from = 0, to = slots - 1): Promise<void> {
  await node.cluster('ADDSLOTS', ...Array.from({ length: to - from + 1 }, (_, index) => from + index))
}

async function isWhole({ redis }: ClusterNode): Promise<boolean> {
  const [info, replication] = await Promise.all([redis.cluster('INFO'), redis.info('replication')]).catch(
    () => ['', ''],
  )
  const ok = String(info).includes('cluster_state:ok') && String(info).includes(`cluster_slots_ok:${slots}`)
  return ok && (replication.includes('role:master') || replication.includes('master_link_status:up'))
}

/** From, to, the master's address, and what else Redis says of it. */
type Shard = readonly [number, number, readonly [string, number]]

async function ownerOf(nodes: readonly ClusterNode[], key: string): Promise<ClusterNode> {
  const slot = Number(await anyAnswer(nodes, (redis) => redis.cluster('KEYSLOT', key)))
  const shards = (await anyAnswer(nodes, (redis) => redis.call('CLUSTER', 'SLOTS'))) as Shard[]
  const port = shards.find(([from, to]) => from <= slot && slot <= to)?.[2][1]
  const owner = nodes.find((node) => node.port === port)
  if (!owner) throw new Error(`nobody answers for slot ${slot}`)
  return owner
}

async function replicaOf(nodes: readonly ClusterNode[], master: ClusterNode): Promise<ClusterNode> {
  const said = String(await master.redis.cluster('REPLICAS', await master.id()))
  const replica = nodes.find(({ port }) => said.includes(`:${port}@`))
  if (!replica) throw new Error('this master has no replica')
  return replica
}

async function anyAnswer<T>(nodes: readonly ClusterNode[], ask: (redis: Redis) => Promise<T>): Promise<T> {
  return Promise.any(nodes.map(({ redis }) => ask(redis)))
}

import { lookup } from 'node:dns'
import { Cluster, type ClusterNode, type Redis } from 'ioredis'
import { UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import {
  type driverOptions,
  enableOfflineQueue,
  loginOf,
  parseAddress,
  type RedisProfile,
  type RedisTarget,
  reconnectDelayMs,
  tlsOf,
  verifiedTls,
} from './redis-options.ts'

/**
 * The connections to a Redis Cluster, with the options that decide whether they still work after a failover.
 *
 * A connection to one node never tries to come back by itself (`clusterNodeRetryStrategy` is left out on purpose): its
 * commands would wait for a node that may be gone for good, nothing would ask the others who has its slots now, and the
 * driver forgets the commands of a node that it drops in the pause between two tries. Without it the commands of a node
 * that is lost go to another one, which answers where they belong. A node that comes back at its address is found there;
 * when all nodes of a cluster are away, the driver connects again.
 */
export function openCluster(
  target: Extract<RedisTarget, { cluster: unknown }>,
  profile: RedisProfile,
  common: ReturnType<typeof driverOptions>,
): Cluster {
  const addresses = target.cluster.map((url) => parseAddress(url))
  if (addresses.some(({ db = 0 }) => db !== 0))
    throw new UserError('redis.cluster: a cluster has database 0 alone')
  if (addresses.some(({ tls }) => (tls === undefined) !== (addresses[0]?.tls === undefined)))
    throw new UserError('redis.cluster: expected redis:// in all addresses, or rediss:// in all')
  const { username, password } = { ...addresses[0], ...loginOf(target) }
  const [tls] = addresses.map((address) => tlsOf(address, target).tls)
  const configured = addresses.map(({ host = '', port = 6379 }) => ({ host, port }))
  const seeds = [...configured]
  const cluster = new Cluster(seeds, {
    clusterRetryStrategy: reconnectDelayMs,
    enableOfflineQueue: enableOfflineQueue(profile),
    // A check that finds the cluster in the middle of a failover leaves the promise of `connect` open for ever, and
    // with it the worker that awaits it. A node that cannot serve says so to each command, which is tried again.
    enableReadyCheck: false,
    scaleReads: 'master',
    retryDelayOnFailover: retryDelayMs,
    retryDelayOnClusterDown: retryDelayMs,
    retryDelayOnTryAgain: retryDelayMs,
    maxRedirections: redirectionsMax[profile],
    // A node that is frozen closes no connection: only the others say that it was replaced.
    slotsRefreshInterval: slotsRefreshEveryMs,
    // Managed clusters return host names, and their certificate names only these: they must not be resolved here.
    dnsLookup: tls ? (address, callback) => callback(null, address) : lookupOrKeep,
    redisOptions: {
      ...common,
      ...given({ username, password }),
      // Each node has a name of its own.
      ...(tls === undefined ? {} : { tls: { ...target.tls, ...verifiedTls } }),
    },
  })
  return followed(cluster, seeds, configured)
}

const retryDelayMs = 200
/**
 * Of one command. Until a failover is over, every second redirection leads back to the dead node, the others pause: what
 * waits has about 20 s, which is longer than an election takes, so that a send that was acknowledged is recorded.
 */
const redirectionsMax = { commands: 16, blocking: 200 } as const
const slotsRefreshEveryMs = 5_000
const addressMissing =
  'the cluster gives no address for any slot (CLUSTER SLOTS): see that its slots are given out, and set cluster-announce-ip on its nodes'

/**
 * Makes the cluster, and the copies that BullMQ makes and reconnects by its own rules, reconnect through the nodes that
 * were last known as well as those of the config: the only one that the config names may be the one that failed.
 */
function followed(cluster: Cluster, seeds: ClusterNode[], configured: readonly ClusterNode[]): Cluster {
  const copy = cluster.duplicate.bind(cluster)
  cluster.duplicate = (_nodes, options) => {
    const own = [...seeds]
    return remember(copy(own, options), own, configured)
  }
  return remember(cluster, seeds, configured)
}

/** `seeds` is the list that the driver keeps, and reads whenever it connects. */
function remember<C extends Pick<Cluster, 'emit' | 'listenerCount' | 'nodes' | 'on'>>(
  cluster: C,
  seeds: ClusterNode[],
  configured: readonly ClusterNode[],
): C {
  cluster.on('+node', ignoreAskingFaults)
  cluster.on('refresh', () => {
    const known = cluster.nodes().map(({ options: { host = '', port = 6379 } }) => ({ host, port }))
    seeds.splice(0, seeds.length, ...configured, ...known)
    // The driver passes them over, and then connects again and again without a word.
    if (known.length === 0 && cluster.listenerCount('error') > 0)
      cluster.emit('error', new Error(addressMissing))
  })
  return cluster
}

/**
 * The driver sends ASKING before each command for a slot that is on its way to this node, and never looks at the answer. A
 * refusal, or a node that dies before it answers, would be an unhandled rejection, which ends the process. The command that
 * follows has an error of its own, and is tried again.
 */
function ignoreAskingFaults(node: Redis): void {
  const asking = node.asking.bind(node) as () => Promise<'OK'>
  node.asking = () => {
    const answer = asking()
    answer.catch(() => {})
    return answer
  }
}

/** A name that DNS does not find (a node that is gone) is kept, and only that node fails; an error would fail them all. */
function lookupOrKeep(address: string, callback: (error: null, address: string) => void): void {
  lookup(address, (error, found) => callback(null, error ? address : found))
}

import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { findAlertmanager, postAlerts, startAlertmanager } from './alertmanager.ts'
import { type PagedFeed, startPagedFeed } from './feed.ts'
import { fetchNodeRed, startFeed, startNodeRed } from './node-red.ts'
import { endsWithUs, main, startBridge } from './process.ts'
import type { Rig } from './rig.ts'
import { rowOf, storeBare, storeOurs } from './stored.ts'
import { prefix, sinks, width } from './work.ts'

/** One way to send the same alerts to the same receiver. */
export interface Arm {
  /** What is there before it starts, in a Redis and a folder without anything else. */
  store(rig: Rig, alerts: number): Promise<void>
  /** Starts sending; after a kill, goes on with what `store` and the life before have left. */
  start(rig: Rig, alerts: number): Promise<Started>
}

export interface Started {
  /** Those that do the work. */
  readonly processes: readonly ChildProcess[]
  /** Who says how many a second there were, where it is not the receiver. */
  readonly teller?: ChildProcess
  /** Gives it the alerts, where it does not find them by itself; over a kill, too. */
  readonly feed?: () => Promise<void>
  stop?(): void
}

export function bare(kind: 'queue' | 'post' | 'both'): Arm {
  return {
    store: async ({ redis }, alerts) => {
      if (kind !== 'post') await storeBare(redis, prefix, [1, alerts])
    },
    async start({ redis, receiver }, alerts) {
      const worker = startBare(kind, redis.socketPath, receiver.url, alerts)
      return { processes: [worker], ...(kind === 'queue' ? { teller: worker } : {}) }
    },
  }
}

export function startBare(
  kind: 'queue' | 'post' | 'both',
  socket: string,
  receiver: string,
  alerts: number,
  queues: string = prefix,
): ChildProcess {
  const row = JSON.stringify(rowOf(1))
  const args = [kind, socket, receiver, String(alerts), row, queues]
  return endsWithUs(fork(join(import.meta.dirname, 'bare.ts'), args))
}

export interface BridgeOptions {
  /** Its main file, where it is not this checkout's. */
  readonly program?: string
  /** Of Node.js. */
  readonly flags?: readonly string[]
  readonly count?: number
}

export function bridge({ count = 1, ...options }: BridgeOptions = {}): Arm {
  return {
    store: ({ redis }, alerts) => storeOurs(redis, prefix, [1, alerts]),
    async start(rig) {
      const config = writeConfig(rig, prefix)
      const args = ['--role', 'sender', '--config', config]
      return { processes: Array.from({ length: count }, () => startBridge(args, options)) }
    },
  }
}

/** A source that is never asked. */
const noSource = '{ baseUrl: "http://127.0.0.1:9", token: none-is-needed }'

/** Of a bridge that only sends, or polls this source too. */
export function writeConfig({ redis, receiver, folder }: Rig, name: string, source = noSource): string {
  const own = mkdtempSync(join(folder, 'bridge-'))
  const config = join(own, 'config.yaml')
  const one = (sink: string) =>
    `${sink}: { type: webhook, url: "${receiver.url}/${sink}", secret: whsec_${'A'.repeat(43)}=, allowPrivateNetworks: true, concurrency: ${width} }`
  writeFileSync(
    config,
    `redis: { url: "${redis.url}", prefix: ${name} }
dataDir: ${own}
http: { listen: "127.0.0.1:0" }
sources: { main: ${source} }
sinks: { ${sinks.map(one).join(', ')} }
routes: [{ sinks: [${sinks.join(', ')}] }]
`,
  )
  return config
}

const folders = { alertmanager: 'of-alertmanager', nodeRed: 'of-node-red' }

function viaAlertmanager(): Arm {
  let url = ''
  return {
    async store({ folder }) {
      mkdirSync(join(folder, folders.alertmanager))
      // The one that is started after a kill is the same for who posts to it.
      url = `http://127.0.0.1:${await freePort()}`
    },
    async start({ folder, receiver }, alerts) {
      const child = await startAlertmanager(join(folder, folders.alertmanager), url, receiver.url)
      return { processes: [child], feed: () => postAlerts(url, [1, alerts]) }
    },
  }
}

/** What the script finds is shown once it has asked for the first time; after a kill, it is there before. */
function viaScript(): Arm {
  let feed: PagedFeed | undefined
  return {
    async store(_rig, alerts) {
      feed?.stop()
      const shown = await startPagedFeed()
      let heads = 0
      shown.onHead = () => {
        heads += 1
        if (heads === 2) shown.add(alerts)
      }
      feed = shown
    },
    start: async ({ receiver }) => ({ processes: [startScript(feed?.url ?? '', receiver.url)] }),
  }
}

export function startScript(feed: string, receiver: string, everyMs = 1_000): ChildProcess {
  return endsWithUs(fork(join(import.meta.dirname, 'script.ts'), [feed, receiver, String(everyMs)]))
}

const viaNodeRed: Arm = {
  store: async ({ folder }) => void mkdirSync(join(folder, folders.nodeRed)),
  async start({ folder, receiver }, alerts) {
    const feed = await startFeed(alerts)
    const child = startNodeRed(join(folder, folders.nodeRed), feed.url, receiver.url)
    return {
      processes: [child],
      stop() {
        feed.server.close()
        feed.server.closeAllConnections()
      },
    }
  },
}

/** In the order in which they run. Those whose program cannot be had are named in `missing`. */
export function allArms(options: BridgeOptions & { readonly beside?: string | undefined }) {
  const { beside, ...own } = options
  const arms: Record<string, Arm> = {
    bullmq: bare('queue'),
    undici: bare('post'),
    bare: bare('both'),
    alertmanager: viaAlertmanager(),
    'node-red': viaNodeRed,
    script: viaScript(),
    ...(beside === undefined ? {} : { beside: bridge({ ...own, program: beside }) }),
    bridge: bridge({ ...own, program: main }),
    'bridge, a process a core': bridge({ ...own, program: main, count: cpus().length }),
  }
  const needs: Record<string, () => unknown> = { alertmanager: findAlertmanager, 'node-red': fetchNodeRed }
  return {
    names: Object.keys(arms),
    /** The wanted ones that can run, and a sentence for each that cannot. */
    choose(wanted: readonly string[]) {
      const missing: string[] = []
      const chosen = Object.entries(arms).filter(([name]) => {
        if (!wanted.includes(name)) return false
        try {
          needs[name]?.()
          return true
        } catch (error) {
          missing.push(`${name} is left out: ${(error as Error).message}`)
          return false
        }
      })
      return { chosen, missing }
    },
  }
}

import { createRequire } from 'node:module'

/**
 * Packages that load more than the bridge needs, or that only some configs need: these are loaded by `load` where the
 * config first asks for them. What is loaded costs memory for as long as the process lives.
 */
export const load = createRequire(import.meta.url)

type Undici = typeof import('undici')

const dispatcher = load('undici/lib/dispatcher/dispatcher') as Undici['Dispatcher']
Object.assign(dispatcher.prototype, load('undici/lib/api'))

/** Of undici, what opens connections: its index loads a browser's fetch, caches and mocks too, 79 of 110 files. */
export const Agent = load('undici/lib/dispatcher/agent') as Undici['Agent']
export const Pool = load('undici/lib/dispatcher/pool') as Undici['Pool']
export const buildConnector = load('undici/lib/core/connect') as Undici['buildConnector']
export const proxyAgent = () => load('undici/lib/dispatcher/proxy-agent') as Undici['ProxyAgent']

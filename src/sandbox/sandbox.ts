import { createServer } from 'node:http'
import { type Account, createAccount } from './account.ts'
import { publishOnAndOn } from './evaluations.ts'
import { createFaultQueue, type InjectedFault } from './faults/faults.ts'
import { fireUntilAborted } from './firing.ts'
import { type SandboxOptions, type Settings, withDefaults } from './options.ts'
import { type ApiDelivery, type ApiRule, isApiDelivery } from './rows.ts'
import { createControl } from './server/control.ts'
import type { SandboxToken, TokenState } from './server/decide-call.ts'
import { closeServer, listen, loopback } from './server/http.ts'
import { type Entry, serve } from './server/serve.ts'
import type { Sandbox, SandboxRequest } from './server/surface.ts'

export { type SandboxOptions, sandboxToken } from './options.ts'
export type { ApiDelivery, ApiRule, InjectedFault, Sandbox, SandboxRequest }

export function createSandbox(options: SandboxOptions = {}): Sandbox {
  return new HttpSandbox(withDefaults(options))
}

class HttpSandbox implements Sandbox {
  readonly #settings: Settings
  readonly #faults = createFaultQueue()
  readonly #accounts = new Map<string, Account>()
  readonly #requests: Entry[] = []
  readonly #firedListeners = new Set<(row: ApiDelivery) => void>()
  readonly #requestListeners = new Set<(request: SandboxRequest) => void>()
  #account: Account
  /** The port of the last start: a stopped sandbox starts again at the same port. */
  #port: number
  #tokens: readonly SandboxToken[]
  #life = new AbortController()
  #firing = new AbortController()
  #servers: ReturnType<typeof createServer>[] = []

  constructor(settings: Settings) {
    this.#settings = settings
    this.#tokens = settings.tokens
    this.#port = settings.port
    const { history: rows, firstId, clock } = settings
    this.#account = createAccount(settings, { rows, firstId }, clock.now())
    this.#accounts.set('main', this.#account)
  }

  async start() {
    const { controlPort, pathPrefix, ratePerMinute } = this.#settings
    this.#life = new AbortController()
    const server = createServer((request, response) => void serve(request, response, this.#context()))
    this.#servers = [server]
    this.#port = await listen(server, this.#port)
    const url = `http://${loopback}:${this.#port}${pathPrefix}`
    this.setRate(ratePerMinute)
    this.#evaluate()
    if (controlPort === undefined) return { url }
    const control = createControl(this)
    this.#servers.push(control)
    return { url, controlUrl: `http://${loopback}:${await listen(control, controlPort)}` }
  }

  async stop() {
    this.stopFiring()
    this.#life.abort()
    const servers = this.#servers.splice(0)
    await Promise.all(servers.map((server) => closeServer(server)))
  }

  fire(fields: Partial<ApiDelivery> = {}) {
    return this.#emitFired(this.#account.fire(this.#settings.clock.now(), fields))
  }

  fireMany(count: number, fields: Partial<ApiDelivery> = {}) {
    return Array.from({ length: count }, () => this.fire(fields))
  }

  insert(row: unknown, atIndex: number) {
    this.#account.feed.insert(row, atIndex)
  }

  makeRow(fields: Partial<ApiDelivery> = {}) {
    return { ...this.#account.make(this.#settings.clock.now()), ...fields }
  }

  remove(id: number) {
    return this.#account.feed.remove(id)
  }

  get rows() {
    return this.#account.feed.rows().filter(isApiDelivery)
  }

  get rules() {
    return this.#account.rules(this.#settings.clock.now())
  }

  setRule(id: number, fields: Partial<ApiRule>) {
    return this.#account.setRule(id, fields)
  }

  get requests() {
    return this.#requests
  }

  get unitsUsed() {
    return this.#account.limits.unitsUsed(this.#settings.clock.now())
  }

  get faults() {
    return this.#faults.list()
  }

  fault(fault: InjectedFault) {
    this.#faults.add(fault)
  }

  clearFaults() {
    this.#faults.clear()
  }

  setToken(token: SandboxToken) {
    const known = this.#tokens.find(({ value }) => value === token.value)
    this.#tokens = [...this.#tokens.filter((each) => each !== known), { ...known, ...token }]
  }

  setTokenState(state: TokenState, value?: string) {
    this.#tokens = this.#tokens.map((token) =>
      value === undefined || token.value === value ? { ...token, state } : token,
    )
  }

  switchAccount(name: string, history = 0) {
    const { clock } = this.#settings
    this.#account =
      this.#accounts.get(name) ?? createAccount(this.#settings, { rows: history, firstId: 1 }, clock.now())
    this.#accounts.set(name, this.#account)
  }

  setRate(perMinute: number) {
    this.stopFiring()
    this.#firing = new AbortController()
    if (perMinute <= 0) return
    const { clock, spacing, seed } = this.#settings
    fireUntilAborted(
      { clock, spacing, seed, gapMs: 60_000 / perMinute, fire: () => this.fire() },
      this.#firing.signal,
    )
  }

  stopFiring() {
    this.#firing.abort()
  }

  #evaluate() {
    const { clock, evaluations } = this.#settings
    if (evaluations === undefined) return
    const publish = (ruleId: number) => this.#emitFired(this.#account.fire(clock.now(), {}, ruleId))
    publishOnAndOn({ clock, evaluations, publish }, this.#life.signal)
  }

  #emitFired(row: ApiDelivery): ApiDelivery {
    for (const listener of this.#firedListeners) listener(row)
    return row
  }

  on(
    ...[event, listener]:
      | [event: 'fired', listener: (row: ApiDelivery) => void]
      | [event: 'request', listener: (request: SandboxRequest) => void]
  ) {
    if (event === 'fired') {
      this.#firedListeners.add(listener)
      return () => this.#firedListeners.delete(listener)
    }
    this.#requestListeners.add(listener)
    return () => this.#requestListeners.delete(listener)
  }

  #context() {
    const { clock, hasPlan, pathPrefix, seed } = this.#settings
    return {
      clock,
      hasPlan,
      pathPrefix,
      seed,
      account: () => this.#account,
      tokens: () => this.#tokens,
      faults: this.#faults,
      fireMany: (count: number) => this.fireMany(count),
      record: (entry: Entry) => {
        this.#requests.push(entry)
        for (const listener of this.#requestListeners) listener(entry)
      },
      signal: this.#life.signal,
    }
  }
}

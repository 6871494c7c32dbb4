import { createServer, type IncomingMessage, type Server } from 'node:http'
import { isMapping } from '../../alert/json/json.ts'
import { toError, UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { tokenProblem } from '../../lib/secret.ts'
import { faultKinds } from '../faults/faults.ts'
import { parseFault } from '../faults/parse.ts'
import type { TokenState } from './decide-call.ts'
import { bodyBytesMax, readBody } from './http.ts'
import type { Sandbox } from './surface.ts'

/**
 * The control port: the sandbox's methods over HTTP, for programs that are not in its process. It listens on loopback
 * only and takes JSON only, so that no web page can post to it by accident. Every answer is JSON; a wrong call gets 400,
 * an unknown one 404, with `{ "error": sentence }`. `GET /` lists all of it:
 *
 *   GET    /          this list, and the kinds of fault with their fields
 *   GET    /state     rows, unitsUsed, faults waiting, the latest requests (?requests=N, default 100)
 *   GET    /rows      the feed's newest rows (?count=N, default 100)
 *   POST   /fire      { count?: 1, fields?: {…} }       → the new rows
 *   POST   /insert    { row?: {…}, at?: 0 }             a row, or a synthetic one, at a place from the newest
 *   POST   /remove    { id }
 *   POST   /rule      { id, fields: {…} }               changes fields of an alert rule
 *   POST   /faults    { kind, times?, after?, page?, endpoint?, … }
 *   DELETE /faults    forgets the faults that wait
 *   POST   /rate      { perMinute }
 *   POST   /token     { value?, scopes?, state?, hasPlan? }: makes or changes a token; without value, the state of all
 *   POST   /account   { name, history?: 0 }             the tokens now show another account's feed
 */
export function createControl(sandbox: Sandbox): Server {
  return createServer((request, response) => {
    void handle(request, sandbox).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(`${JSON.stringify(body, null, 2)}\n`)
    })
  })
}

const tokenStates: readonly TokenState[] = ['valid', 'expired', 'revoked', 'other_integration']

type Fields = Readonly<Record<string, unknown>>

interface Action {
  readonly says: string
  run(sandbox: Sandbox, fields: Fields): unknown
}

const actions: Readonly<Record<string, Action>> = {
  'GET /': { says: 'what this port understands', run: () => describe() },
  'GET /state': {
    says: 'rows, unitsUsed, faults waiting, the latest requests (?requests=N)',
    run: (sandbox, fields) => ({
      rows: sandbox.rows.length,
      unitsUsed: sandbox.unitsUsed,
      faults: sandbox.faults,
      requests: sandbox.requests.slice(-number(fields, 'requests', 100)),
    }),
  },
  'GET /rows': {
    says: "the feed's newest rows (?count=N)",
    run: (sandbox, fields) => sandbox.rows.slice(0, number(fields, 'count', 100)),
  },
  'POST /fire': {
    says: 'new alerts at the head: { count?, fields? }',
    run: (sandbox, fields) => sandbox.fireMany(number(fields, 'count', 1), object(fields, 'fields')),
  },
  'POST /insert': {
    says: 'a row at a place from the newest: { row?, at? }; without row a synthetic one',
    run(sandbox, fields) {
      const row = 'row' in fields ? fields['row'] : sandbox.makeRow()
      sandbox.insert(row, number(fields, 'at', 0))
      return row
    },
  },
  'POST /remove': {
    says: 'takes a row out: { id }',
    run: (sandbox, fields) => ({ removed: sandbox.remove(number(fields, 'id')) }),
  },
  'POST /rule': {
    says: 'changes fields of an alert rule: { id, fields }, such as { "isArmed": false }',
    run(sandbox, fields) {
      const id = number(fields, 'id')
      if (!sandbox.setRule(id, object(fields, 'fields'))) throw new UserError(`there is no rule ${id}`)
      return sandbox.rules.find((rule) => rule.id === id)
    },
  },
  'POST /faults': {
    says: 'declares a fault: { kind, times?, after?, page?, endpoint?, … }; times 0 is: until cleared',
    run(sandbox, fields) {
      sandbox.fault(parseFault(fields))
      return sandbox.faults
    },
  },
  'DELETE /faults': {
    says: 'forgets the faults that wait',
    run(sandbox) {
      sandbox.clearFaults()
      return []
    },
  },
  'POST /rate': {
    says: 'alerts a minute from now on: { perMinute }',
    run(sandbox, fields) {
      sandbox.setRate(number(fields, 'perMinute'))
      return { perMinute: fields['perMinute'] }
    },
  },
  'POST /token': {
    says: `makes or changes a token: { value, scopes?: [...], state?: ${tokenStates.join(' | ')}, hasPlan? }; without value, the state of all`,
    run: (sandbox, fields) => changeToken(sandbox, fields),
  },
  'POST /account': {
    says: "shows another account's feed: { name, history? }",
    run(sandbox, fields) {
      if (typeof fields['name'] !== 'string') throw new UserError('name must be a string')
      sandbox.switchAccount(fields['name'], number(fields, 'history', 0))
      return { name: fields['name'], rows: sandbox.rows.length }
    },
  },
}

function describe(): unknown {
  const calls = Object.entries(actions).map(([call, { says }]) => [call, says])
  const faults = Object.entries(faultKinds).map(([kind, { says, fields }]) => [kind, { says, fields }])
  return { calls: Object.fromEntries(calls), faults: Object.fromEntries(faults) }
}

async function handle(
  request: IncomingMessage,
  sandbox: Sandbox,
): Promise<{ status: number; body: unknown }> {
  try {
    const [path = '/', query = ''] = (request.url ?? '/').split('?')
    const call = `${request.method} ${path}`
    const action = Object.hasOwn(actions, call) ? actions[call] : undefined
    if (!action) return { status: 404, body: { error: `${call} is unknown; GET / lists what there is` } }
    const fields = request.method === 'POST' ? await readFields(request) : fromQuery(query)
    return { status: 200, body: action.run(sandbox, fields) }
  } catch (thrown) {
    return { status: thrown instanceof UserError ? 400 : 500, body: { error: toError(thrown).message } }
  }
}

function fromQuery(query: string): Fields {
  return Object.fromEntries([...new URLSearchParams(query)].map(([name, value]) => [name, Number(value)]))
}

async function readFields(request: IncomingMessage): Promise<Fields> {
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
    throw new UserError('the content type must be application/json')
  const text = await readBody(request)
  if (text === undefined) throw new UserError(`the body is longer than ${bodyBytesMax} bytes`)
  try {
    const value: unknown = JSON.parse(text || '{}')
    if (isMapping(value)) return value
  } catch {
    // The error below is thrown for both.
  }
  throw new UserError('the body must be a JSON object')
}

function changeToken(sandbox: Sandbox, { value, scopes, state: named, hasPlan }: Fields): unknown {
  const state = tokenStates.find((each) => each === named)
  if (named !== undefined && !state) throw new UserError(`state must be one of ${tokenStates.join(', ')}`)
  if (value === undefined) {
    if (!state)
      throw new UserError(`state must be one of ${tokenStates.join(', ')}, or value must name a token`)
    sandbox.setTokenState(state)
    return { state }
  }
  const problem = typeof value === 'string' ? tokenProblem(value) : 'expected a text'
  if (problem !== undefined) throw new UserError(`value: ${problem}`)
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((each) => typeof each === 'string')))
    throw new UserError('scopes must be a list of strings')
  if (hasPlan !== undefined && typeof hasPlan !== 'boolean')
    throw new UserError('hasPlan must be true or false')
  const token = { value: String(value), ...given({ scopes, state, hasPlan }) }
  sandbox.setToken(token)
  return token
}

function number(fields: Fields, name: string, otherwise?: number): number {
  const value = fields[name] ?? otherwise
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw new UserError(`${name} must be a number from 0`)
}

function object(fields: Fields, name: string): Fields {
  const value = fields[name] ?? {}
  if (isMapping(value)) return value
  throw new UserError(`${name} must be an object`)
}

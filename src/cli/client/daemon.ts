import type { Command } from 'commander'
import { Agent, fetch, type Response } from 'undici'
import * as z from 'zod'
import { parseJson } from '../../alert/json/json-number.ts'
import { isPlain } from '../../config/checks/plain.ts'
import { type LoadedHttp, loadHttp } from '../../config/load-http.ts'
import { formatMistake } from '../../config/mistakes/mistake.ts'
import { NotFoundError, UserError } from '../../lib/errors.ts'
import { hostPort } from '../../lib/host-port.ts'
import { tokenProblem } from '../../lib/secret.ts'
import { printable } from '../../telemetry/printable.ts'
import { timeZoneHeader, versionHeader } from '../../telemetry/version.ts'
import { UsageError, urlOption } from '../arguments/usage.ts'
import { localTimes } from '../output/local-times.ts'
import { printError } from '../output/output.ts'
import { noteAnswer } from './answered.ts'

/**
 * The operator's commands call the HTTP API of a running bridge. This file finds its address (`--url`, or `http.listen`
 * of `--config`), sends the admin token, and turns every refusal into one sentence.
 */
export interface Daemon {
  get(path: string, query?: Record<string, string | undefined>): Promise<unknown>
  post(path: string, body?: unknown): Promise<unknown>
  /** A request that is carried out once, however often it is sent with this key. */
  postOnce(path: string, body: unknown, key: string): Promise<KeyedAnswer>
  remove(path: string): Promise<unknown>
}

interface KeyedAnswer {
  readonly answer: unknown
  /** Whether it is the answer of the same request, sent before. */
  readonly isRepeated: boolean
}

/** There was no answer, or the bridge cannot do it now: it is worth trying again. */
export class NoAnswerError extends UserError {}

export interface DaemonOptions {
  readonly url?: string
  readonly config?: string
  readonly token?: string
  readonly json?: boolean
  readonly utc?: boolean
}

const callTimeoutMs = 15_000
const defaultUrl = 'http://127.0.0.1:8080'

/** Gives a command the options that all commands to a running bridge have. */
export function daemonCommand(command: Command): Command {
  return command
    .option(
      '--url <url>',
      `where the bridge listens (default http.listen of --config, or ALERT_BRIDGE_URL, or ${defaultUrl})`,
      urlOption,
    )
    .option('--config <file>', 'the config of the running bridge: address and admin token are taken from it')
    .option(
      '--token <token>',
      'the admin token; better ALERT_BRIDGE_TOKEN in the environment, since others see command lines',
      tokenOption,
    )
    .option('--json', 'print JSON, with times in UTC')
    .option('--utc', "times in UTC, and not in the bridge's zone (display.timeZone)")
}

export function connectDaemon(options: DaemonOptions): Daemon {
  const { base, token } = addressOf(options)
  /** A request that only reads gets no token: it needs none, and another program may listen at the address. */
  let warned = false
  const authorization = (method: string) => {
    const shown = method === 'GET' ? undefined : token()
    if (shown !== undefined && !warned && isPlain(base)) {
      const { host } = new URL(base)
      printError(`warning: the admin token travels unencrypted to ${host}; use https, or a tunnel`)
      warned = true
    }
    return shown === undefined ? {} : { authorization: `Bearer ${shown}` }
  }
  // Set here, so that NODE_TLS_REJECT_UNAUTHORIZED=0 cannot give the admin token to a stranger. No pipelining: a command
  // makes few calls.
  const dispatcher = new Agent({ pipelining: 0, connect: { rejectUnauthorized: true } })
  const request = async (
    method: string,
    path: string,
    { body, key }: { readonly body?: unknown; readonly key?: string } = {},
  ): Promise<KeyedAnswer> => {
    const own = authorization(method)
    const response = await fetch(`${base}${path}`, {
      method,
      signal: AbortSignal.timeout(callTimeoutMs),
      redirect: 'error',
      dispatcher,
      headers: {
        accept: 'application/json',
        ...own,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((cause: unknown) => {
      throw new NoAnswerError(
        `No bridge answers at ${base}; is it running, and is --url (or --config) right?`,
        { cause },
      )
    })
    if (!response.headers.has(versionHeader)) throw notABridgeError(base, response.status)
    noteAnswer(base)
    const answer = await readAnswer(response, base).catch((cause: unknown) => {
      if (cause instanceof UserError) throw cause
      throw new NoAnswerError(
        `The bridge at ${base} did not end its answer. What you asked it to do may have been done.`,
        { cause },
      )
    })
    if (!response.ok) {
      // The bridge's own sentence names a header.
      if (response.status === 401 && !('authorization' in own)) throw new UserError(noTokenText)
      const refusal = refusalOf(answer) ?? `The bridge answered ${response.status}.`
      // The request with this key that was sent before is not answered yet.
      const isRunning = key !== undefined && response.status === 409 && response.headers.has('retry-after')
      if (response.status === 503 || isRunning) throw new NoAnswerError(refusal)
      if (response.status === 404) throw new NotFoundError(refusal)
      // The bridge checks limits that the command line does not.
      throw response.status === 400 ? new UsageError(refusal) : new UserError(refusal)
    }
    const timeZone = response.headers.get(timeZoneHeader)
    const inUtc = options.json || options.utc || timeZone === null
    return {
      answer: inUtc ? answer : localTimes(answer, timeZone),
      isRepeated: response.headers.has('idempotent-replayed'),
    }
  }
  const call = async (...given: Parameters<typeof request>) => (await request(...given)).answer
  return {
    get: (path, query = {}) => call('GET', path + queryOf(query)),
    post: (path, body = {}) => call('POST', path, { body }),
    postOnce: (path, body, key) => request('POST', path, { body, key }),
    remove: (path) => call('DELETE', path),
  }
}

const noTokenText =
  "This needs the admin token (http.adminToken of the bridge's config): give it by --token, or in ALERT_BRIDGE_TOKEN."

/** Many times a page of a list. What says that it is a bridge may be none, and send without an end. */
const answerBytesMax = 100 * 1_024 * 1_024

/** An alert's row may have numbers that JavaScript cannot hold. A refusal need not be JSON. */
async function readAnswer(response: Response, base: string): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > answerBytesMax)
      throw new UserError(
        `The answer of ${base} is longer than ${answerBytesMax} bytes; is --url (or --config) right?`,
      )
    chunks.push(chunk)
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks))
  try {
    return parseJson(text)
  } catch (thrown) {
    if (response.ok) throw thrown
    return undefined
  }
}

/** The answer is not from a bridge. A 502 to 504 may be from a proxy while the bridge starts: worth trying again. */
function notABridgeError(base: string, status: number): UserError {
  const sentence = `What answers at ${base} is no alert-bridge (HTTP ${status}); is --url (or --config) right?`
  return status >= 502 && status <= 504 ? new NoAnswerError(sentence) : new UserError(sentence)
}

interface DaemonAddress {
  readonly base: string
  /** The admin token; throws when the one that the config names cannot be read. */
  token(): string | undefined
}

function addressOf({ token, ...options }: DaemonOptions): DaemonAddress {
  const found = addressWithoutOption(options)
  return token === undefined ? found : { ...found, token: () => token }
}

function addressWithoutOption({ url, config }: DaemonOptions): DaemonAddress {
  if (config === undefined) return { base: url ?? urlFromEnv() ?? defaultUrl, token: tokenFromEnv }
  const loaded = loadHttp(config, process.env)
  if (loaded.ok) {
    const { adminToken } = loaded.http
    return { base: baseOf(url, loaded.http), token: () => adminToken?.reveal() ?? tokenFromEnv() }
  }
  // A command that only reads needs no token.
  const withoutToken = loadHttp(config, process.env, ['adminToken', 'adminTokenFile'])
  const sentence = loaded.mistakes.map((each) => formatMistake(config, each)).join('\n')
  if (!withoutToken.ok) throw new UserError(sentence)
  return {
    base: baseOf(url, withoutToken.http),
    token() {
      const token = tokenFromEnv()
      if (token === undefined) throw new UserError(sentence)
      return token
    },
  }
}

function urlFromEnv(): string | undefined {
  const url = process.env['ALERT_BRIDGE_URL'] || undefined
  return url === undefined ? undefined : urlOption(url, 'ALERT_BRIDGE_URL')
}

function tokenFromEnv(): string | undefined {
  const name = ['ALERT_BRIDGE_TOKEN', 'ADMIN_TOKEN'].find((each) => process.env[each])
  return name === undefined ? undefined : checkedToken(process.env[name] ?? '', name)
}

function tokenOption(text: string): string {
  return checkedToken(text, '--token')
}

function checkedToken(token: string, place: string): string {
  const problem = tokenProblem(token)
  if (problem !== undefined) throw new UsageError(`${place}: ${problem}.`)
  return token
}

function baseOf(url: string | undefined, { listen }: Extract<LoadedHttp, { ok: true }>['http']): string {
  if (url !== undefined) return url
  if (listen.port === 0)
    throw new UserError('http.listen has port 0, which is another one at each start: say with --url which.')
  // A bridge that listens on every address also listens on the loopback one.
  const host = ['0.0.0.0', '::'].includes(listen.host) ? '127.0.0.1' : listen.host
  return `http://${hostPort({ host, port: listen.port })}`
}

function queryOf(query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** The `detail` of a problem (RFC 9457), with its `mistakes`. */
function refusalOf(answer: unknown): string | undefined {
  const problem = z
    .object({ detail: z.string(), mistakes: z.array(z.string()).default([]) })
    .safeParse(answer)
  return problem.success
    ? [problem.data.detail, ...problem.data.mistakes].map(printable).join('\n')
    : undefined
}

import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
} from 'fastify'
import * as z from 'zod'
import { readJson } from '../alert/json/json.ts'
import { MalformedError, NotFoundError, UserError } from '../lib/errors.ts'
import { isUnheard } from '../store/connection/redis-errors.ts'
import { timeZoneHeader } from '../telemetry/version.ts'
import { registerActions } from './actions.ts'
import { eventsPath, registerEvents } from './events.ts'
import { answerFewAtOnce } from './guard/at-once.ts'
import { limitConnections } from './guard/connections.ts'
import { safeHeaders } from './guard/headers.ts'
import { lifePaths, refuseForeignHosts } from './guard/host.ts'
import { malformedAnswers, refuseExpectations } from './guard/malformed.ts'
import { keepFewUnread, type Unread } from './guard/unread.ts'
import { registerHealth } from './health.ts'
import { collectRoutes, type KnownRoute } from './openapi/about.ts'
import { openApiDocument } from './openapi/document.ts'
import { registerOrphans } from './orphans.ts'
import { registerPage } from './page/route.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'
import { registerRead } from './read.ts'
import { registerReads } from './reads.ts'

/**
 * The HTTP server for operators: metrics, health, JSON API, status page. It is built without listening: tests inject
 * requests, and the app chooses the address. Anybody who reaches the server by a name of the bridge may read; changes
 * need the token.
 */
export function buildAdmin(deps: AdminDeps): FastifyInstance {
  const unread = keepFewUnread()
  const asked: Unread['asked'] = (request, response) => {
    unread.asked(request, response)
    read(request.socket)
  }
  const app = fastify({
    logger: false,
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    handlerTimeout: handlerTimeoutMs,
    connectionTimeout: 0,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: true,
    return503OnClosing: false,
    trustProxy: false,
    exposeHeadRoutes: true,
    ...malformedAnswers(asked),
    schemaController: { compilersFactory: noCompilers },
    // `refuseForeignHosts` refuses a missing Host, with our headers.
    http: { requireHostHeader: false },
    routerOptions: { maxParamLength: paramCharsMax },
  })
  const read = limitConnections(app.server, unread)
  acceptOnlyJson(app)
  app.addHook('onRequest', async (request, reply) => {
    asked(request.raw, reply.raw)
    reply.headers({ ...safeHeaders, [timeZoneHeader]: deps.display().timeZone })
  })
  refuseForeignHosts(app, deps)
  refuseExpectations(app, asked)
  answerFewAtOnce(app, new Set([...lifePaths, eventsPath]), unread)
  // No handler: before one is called the body is read, up to a megabyte of each connection, from anybody.
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return
    const detail = `There is no ${request.method} ${request.url.split('?')[0]}.`
    return sendProblem(reply, { status: 404, detail })
  })
  app.setErrorHandler<FastifyError>((error, request, reply) => answerError(deps, error, request, reply))
  const routes = collectRoutes(app)
  registerHealth(app, deps)
  registerReads(app, deps)
  registerEvents(app, deps)
  registerActions(app, deps)
  registerOrphans(app, deps)
  registerPage(app, deps)
  registerDocument(app, routes)
  return app
}

function registerDocument(app: FastifyInstance, routes: readonly KnownRoute[]): void {
  const about = { says: 'This document (OpenAPI 3.1)', answer: z.looseObject({ openapi: z.string() }) }
  let document: ReturnType<typeof openApiDocument> | undefined
  // It takes 20 ms to make.
  registerRead(app, '/api/v1/openapi.json', about, () => (document ??= openApiDocument(routes)))
}

/** Requests are checked with zod. Without these, fastify loads a hundred files to compile schemas of its own, at each start. */
const noCompilers = { buildValidator: refuseSchema, buildSerializer: refuseSchema }

function refuseSchema(): never {
  throw new Error('routes have no schema of fastify')
}

/** Enough for an order with as many ids as are allowed, with the longest names. */
const bodyBytesMax = 1_024 * 1_024
const requestTimeoutMs = 10_000
const handlerTimeoutMs = 15_000
const keepAliveTimeoutMs = 5_000
/** Much more than the longest source or sink name and the longest id. */
const paramCharsMax = 200

/** A form on a foreign page can send text/plain without a preflight, so only JSON is read. An empty body is `{}`. */
function acceptOnlyJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body.trim() === '') done(null, {})
    else
      void parse(request, body, (error, value: unknown) => {
        // The library calls any body that it refuses invalid.
        const isKeyRefused = error !== null && readJson(body) !== undefined
        const why = isKeyRefused ? dangerousKey : error === null && isTooDeep(value) && tooDeep
        done(why ? Object.assign(new Error(why), { statusCode: 400 }) : error, value)
      })
  })
}

const dangerousKey = 'The body has a key that no request has: __proto__, or a constructor with a prototype.'

/** More than any request has. What reads a body calls itself for each level. */
const levelsMax = 50
const tooDeep = `The body is nested deeper than ${levelsMax} levels.`

function isTooDeep(body: unknown): boolean {
  let level: unknown[] = [body]
  for (let depth = 0; depth <= levelsMax && level.length > 0; depth += 1)
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  return level.length > 0
}

/** Answers a mistake of the caller with its text. Logs an error inside; then the answer says what the caller can do. */
function answerError(
  deps: AdminDeps,
  error: unknown,
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof z.ZodError) return sendProblem(reply, { status: 400, detail: mistakesOf(error) })
  const status = statusOf(error)
  if (status === 415) return sendProblem(reply, { status, detail: noJson })
  if (status < 500 && error instanceof Error) return sendProblem(reply, { status, detail: error.message })
  deps.log.error({ err: error, path: url.split('?')[0] }, 'admin request failed')
  const isOrder = method !== 'GET' && method !== 'HEAD'
  const why = status === 503 ? 'late' : isOrder && isUnheard(error) ? 'unheard' : 'failed'
  return sendProblem(reply, { status: 503, detail: failures[why] })
}

/** What curl sends with -d alone is called a form. */
const noJson = "Send JSON, and say so: 'content-type: application/json'."

const failures = {
  late: 'No answer within the time limit.',
  failed: 'That could not be done now; the log says why, and /readyz whether Redis answers.',
  unheard:
    'Redis did not say in time that it is done: look whether it is before you send it again. /readyz says whether Redis answers.',
} as const

function mistakesOf(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => [path.join('.'), plain(message)].filter(Boolean).join(': '))
    .join('; ')
}

/** The library's own sentences name types of its own; those of the bridge stay as they are. */
function plain(message: string): string {
  return plainWords.reduce((text, [found, words]) => text.replace(found, words), message)
}

const plainWords: readonly (readonly [RegExp, string])[] = [
  [/^(?:Invalid (?:input|option)|Too small|Too big): (?=expected )/, ''],
  [/^expected (?:record|object)\b/, 'expected an object'],
  [/^expected string\b/, 'expected a text'],
  [/^expected array\b/, 'expected a list'],
  [/^expected int\b/, 'expected a whole number'],
  [/^expected number\b/, 'expected a number'],
  [/^expected boolean\b/, 'expected true or false'],
  [/ to have >=1 \w+$/, ' that is not empty'],
  [/ to (?:have|be) >=/, ' of at least '],
  [/ to (?:have|be) <=/, ' of at most '],
  [/(?<=^expected a (?:whole )?number), received (?:NaN|number)$/, ''],
  [/, received undefined$/, ', and it is missing'],
  [/, received (\w+)$/, ', found $1'],
  [/^Unrecognized keys?: /, 'there is no key '],
  [/^Invalid input$/, 'expected another form'],
]

function statusOf(error: unknown): number {
  if (error instanceof NotFoundError) return 404
  if (error instanceof MalformedError) return 400
  // The request is valid, but the state of the bridge does not allow it now.
  if (error instanceof UserError) return 409
  const known = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : 500
  return typeof known === 'number' && known >= 400 ? known : 500
}

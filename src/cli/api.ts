import type { Command } from 'commander'
import { type Lookups, openLookups } from '../app/source/lookups.ts'
import { parseAnswer } from '../feed/api/answer.ts'
import { matchPath, readTexts } from '../feed/api/read-texts.ts'
import { type ApiRequest, type LooseParameters, prepareLoose } from '../feed/api/request.ts'
import { type EndpointPath, endpointOf, endpoints } from '../feed/endpoints.ts'
import { UserError } from '../lib/errors.ts'
import { configOf } from './arguments/config-file.ts'
import { sourceOf } from './arguments/config-source.ts'
import { UsageError } from './arguments/usage.ts'
import { namedCommand } from './command-texts.ts'
import { print, printError, printJson } from './output/output.ts'
import { progressBar } from './output/progress.ts'

interface Options {
  readonly query?: readonly Pair[]
  readonly data?: unknown
  readonly config?: string
  readonly source?: string
  readonly all?: true
  readonly dryRun?: true
  readonly json?: true
}
type Pair = readonly [name: string, text: string]

/** `api METHOD PATH`: one call of the Market Data Read API. It is checked first, and counted in the bridge's ledger. */
export function apiCommand(): Command {
  return namedCommand('api')
    .argument('<method>', 'GET or POST')
    .argument('<path>', 'such as /api/v1/instruments/foolad/prices')
    .option('--query <name=value>', 'a parameter; may be given again, for a list with the same name', toPair)
    .option('--data <json>', 'the body of a POST', toData)
    .option('--config <file>', 'the config, YAML: it names the source, and the Redis where units are counted')
    .option('--source <name>', 'the source whose token is used; default: the only one')
    .option(
      '--all',
      'reads every page of a list, each at its cost, into one answer; of a list that changes meanwhile, a row may come twice or be missed',
    )
    .option('--dry-run', 'checks the call and prints what it needs and costs; sends nothing, needs no config')
    .option('--json', 'print JSON, also what --dry-run shows')
    .addHelpText('after', () => `\nEndpoints:\n${endpointLines().join('\n')}`)
    .action(run)
}

const signals = ['SIGINT', 'SIGTERM'] as const

async function run(method: string, text: string, options: Options): Promise<void> {
  const { path, parameters } = readCall(method.toUpperCase(), text, options)
  const request = prepared(path, parameters)
  if (options.all) checkAll(path, parameters)
  if (options.dryRun) return printDryRun(request, options)
  if (options.config === undefined)
    throw new UsageError('api needs --config FILE; with --dry-run it sends nothing and needs none.')
  const config = configOf(options.config).config
  const [name, source] = sourceOf(config, options.source)
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  for (const signal of signals) process.on(signal, onSignal)
  let lookups: Lookups | undefined
  try {
    lookups = await openLookups(config, name, source, stop.signal)
    if (options.all) await printAll(path, parameters, lookups)
    else await printOne(request, lookups)
  } catch (thrown) {
    throw stop.signal.aborted ? new UserError('Stopped.', { cause: thrown }) : thrown
  } finally {
    await lookups?.close()
    for (const signal of signals) process.off(signal, onSignal)
  }
}

function readCall(method: string, text: string, { query = [], data }: Options) {
  const [pathname = '', ...rest] = text.split('?')
  const found = matchPath(pathname)
  if (found === undefined)
    throw new UsageError(`There is no endpoint ${pathname}; api --help lists those that there are.`)
  const { path, instrument } = found
  const endpoint = endpointOf(path)
  if (endpoint.method !== method) throw new UsageError(`${path} takes ${endpoint.method}, not ${method}.`)
  const pairs = [...new URLSearchParams(rest.join('?')), ...query]
  const parameters: LooseParameters = { instrument, query: readTexts(path, pairs), body: data }
  return { path, parameters }
}

function prepared(path: EndpointPath, parameters: LooseParameters): ApiRequest {
  const result = prepareLoose(path, parameters)
  if (result.ok) return result.request
  throw new UsageError(`Nothing was sent. ${result.problems.join('\n')}`)
}

function checkAll(path: EndpointPath, { query }: LooseParameters): void {
  if (endpointOf(path).answer.envelope !== 'page') throw new UsageError(`--all: ${path} has no pages.`)
  if (query?.['page'] !== undefined) throw new UsageError('--all reads every page: leave page out.')
}

function printDryRun({ endpoint, target, body }: ApiRequest, { all, json }: Options): void {
  const { method, path, scope, units } = endpoint
  if (json) {
    const sent = body === undefined ? {} : { body: JSON.parse(body) as unknown }
    printJson({ method, path: target, endpoint: path, ...sent, scope, cost: units, eachPage: all === true })
    return
  }
  const cost = `${units} ${units === 1 ? 'unit' : 'units'}${all ? ' a page' : ''}`
  print(
    [
      `${method} ${target}`,
      ...(body === undefined || body === '{}' ? [] : [`body:  ${body}`]),
      `scope: ${scope}`,
      `cost:  ${cost}`,
    ].join('\n'),
  )
}

async function printOne(request: ApiRequest, lookups: Lookups): Promise<void> {
  const body = await lookups.ask(request, { waitForMinute: false })
  printJson(body)
  const parsed = parseAnswer(request.endpoint, request.page, body)
  if (!parsed.ok)
    printError(`This is not the documented ${request.endpoint.answer.envelope}: ${parsed.reason}.`)
}

/** Also prints what was read before a failure, since its units are spent. */
async function printAll(path: EndpointPath, parameters: LooseParameters, lookups: Lookups): Promise<void> {
  const rows: unknown[] = []
  let meta: unknown
  const bar = progressBar('Reading')
  try {
    for (let page = 1; ; page += 1) {
      const request = prepared(path, { ...parameters, query: { ...parameters.query, page } })
      const body = await lookups.ask(request, { waitForMinute: true })
      const parsed = parseAnswer(request.endpoint, page, body)
      if (!parsed.ok) throw new UserError(`Page ${page} is not the documented page: ${parsed.reason}.`)
      const { total, lastPage } = parsed.page as { total: number; lastPage: number }
      const answer = body as { data: readonly unknown[]; meta: unknown }
      rows.push(...answer.data)
      meta = answer.meta
      bar.show(rows.length, total)
      if (!process.stderr.isTTY) printError(`page ${page} of ${lastPage}: ${rows.length} of ${total} rows`)
      if (page >= lastPage) break
    }
  } finally {
    bar.end()
    if (meta !== undefined) printJson({ data: rows, meta })
  }
}

function endpointLines(): string[] {
  const longest = Math.max(...endpoints.map(({ path }) => path.length))
  return endpoints.map(
    ({ method, path, scope, units }) =>
      `  ${method.padEnd(4)} ${path.padEnd(longest)}  ${scope.padEnd(15)}  ${String(units).padStart(2)}`,
  )
}

function toPair(text: string, before: readonly Pair[] = []): readonly Pair[] {
  const at = text.indexOf('=')
  if (at > 0) return [...before, [text.slice(0, at), text.slice(at + 1)]]
  throw new UsageError(`--query: "${text}" is not NAME=VALUE.`)
}

function toData(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError('--data: this is no JSON.')
  }
}

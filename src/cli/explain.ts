import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { type Alert, parseRow } from '../alert/alert.ts'
import type { Miss } from '../alert/match.ts'
import { type RouteDecision, type Routing, route } from '../alert/route.ts'
import { oneLine } from '../alert/text.ts'
import { loadConfig } from '../config/load.ts'
import { formatMistake } from '../config/mistake.ts'
import { property } from '../config/outline.ts'
import { describeReadError } from '../config/read-error.ts'
import type { Config } from '../config/schema.ts'
import { UserError } from '../lib/errors.ts'

interface Options {
  readonly config: string
  readonly source?: string
  readonly json?: boolean
}

/** `explain FILE.json`: which routes and sinks would take this alert, and why the others would not. Sends nothing. */
export function explainCommand(): Command {
  return new Command('explain')
    .description('which routes and sinks would take this alert, and why the others would not')
    .argument('<file>', 'JSON: a delivery row of the API, or the body of a webhook; - reads standard input')
    .requiredOption('--config <file>', 'the config, YAML')
    .option(
      '--source <name>',
      'the source that the alert came from; default: what the file says, or the only one',
    )
    .option('--json', 'print JSON')
    .action((file: string, options: Options) => {
      const config = configOf(options.config)
      if (config === undefined) return
      const { row, source } = readAlertFile(file)
      const alert = alertOf(row, sourceOf(config, options.source ?? source))
      const routing = route(alert, config.routes)
      process.stdout.write(options.json ? asJson(alert, routing) : asText(alert, routing, config))
    })
}

function configOf(file: string): Config | undefined {
  const loaded = loadConfig(file, process.env)
  if (loaded.ok) return loaded.config
  for (const mistake of loaded.mistakes) process.stderr.write(`${formatMistake(file, mistake)}\n`)
  process.exitCode = 1
  return undefined
}

/** The row itself, or wrapped as webhooks (`{data: {source, delivery}}`) and the bridge's own API carry it. */
function readAlertFile(file: string): { row: unknown; source: string | undefined } {
  const name = file === '-' ? 'standard input' : file
  let body: unknown
  try {
    body = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (thrown) {
    if (thrown instanceof SyntaxError) throw new UserError(`${name}: this is no JSON`)
    throw new UserError(`${name}: the file cannot be read: ${describeReadError(thrown)}`)
  }
  const data = property(body, 'data')
  const source = property(data, 'source')
  const row = property(data, 'delivery') ?? property(data, 'row') ?? body
  return { row, source: typeof source === 'string' ? source : undefined }
}

function sourceOf(config: Config, wanted: string | undefined): string {
  const names = Object.keys(config.sources)
  const [only] = names
  if (wanted !== undefined) {
    if (names.includes(wanted)) return wanted
    throw new UserError(`There is no source ${wanted}; there is ${names.join(', ')}.`)
  }
  if (only !== undefined && names.length === 1) return only
  throw new UserError(`--source must say which source the alert came from: ${names.join(', ')}.`)
}

function alertOf(row: unknown, source: string): Alert {
  const parsed = parseRow(source, row)
  if (parsed.ok) return parsed.alert
  throw new UserError(`This is no alert, and would be set aside: ${parsed.reason}.`)
}

function asJson(alert: Alert, routing: Routing): string {
  const { source, id, kind, symbol, ruleIds } = alert
  return `${JSON.stringify({ alert: { source, id, kind, symbol, ruleIds }, ...routing }, null, 2)}\n`
}

function asText(alert: Alert, routing: Routing, config: Config): string {
  const { sinks, decisions } = routing
  const idle = Object.keys(config.sinks).filter((name) => !sinks.includes(name))
  const symbol = alert.symbol === null ? 'none' : oneLine(alert.symbol)
  const lines = [
    `${alert.source}.${alert.id}: kind ${oneLine(alert.kind)}, symbol ${symbol}, rules ${listed(alert.ruleIds)}`,
    ...decisions.map(describeDecision),
    `sent to: ${listed(sinks)}`,
    ...(idle.length > 0 ? [`not sent to: ${listed(idle)}`] : []),
  ]
  return `${lines.join('\n')}\n`
}

function describeDecision(decision: RouteDecision): string {
  const label = `routes[${decision.index}]${decision.name === undefined ? '' : ` (${decision.name})`}`
  const target = `→ ${listed(decision.sinks)}`
  switch (decision.reason) {
    case 'takes_everything':
      return `  yes  ${label} ${target}: takes everything`
    case 'matched':
      return `  yes  ${label} ${target}: matches`
    case 'differs':
      return `  no   ${label} ${target}: ${decision.misses.map(describeMiss).join('; ')}`
  }
}

function describeMiss({ field, found, wanted }: Miss): string {
  return `${field} is ${listed(found)}, wanted ${wanted.join(' or ')}`
}

/** What the API sent must not reach a terminal as it came. */
function listed(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.map(oneLine).join(', ')
}

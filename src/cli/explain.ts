import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import * as z from 'zod'
import { localSentences } from '../admin/own-instants.ts'
import type { ExplanationView } from '../admin/views/delivery-view.ts'
import { type Alert, parseRow } from '../alert/alert.ts'
import { property } from '../alert/json/json.ts'
import { parseJson } from '../alert/json/json-number.ts'
import { ruleLookup } from '../alert/match/fields.ts'
import type { RuleLookup } from '../alert/match/match.ts'
import { parseMatch } from '../alert/match/match-form.ts'
import { atOnce } from '../alert/match/turns.ts'
import { type Routing, route } from '../alert/route.ts'
import type { Silence } from '../alert/silence.ts'
import { asciiDigits } from '../alert/text/text.ts'
import type { Config } from '../config/schema.ts'
import { UserError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { explainText } from '../routing/explain-text.ts'
import { configOf } from './arguments/config-file.ts'
import { readFileArgument } from './arguments/file-argument.ts'
import { instantOption } from './arguments/instant.ts'
import { alertOf as alertOfId, UsageError, urlOption } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions } from './client/daemon.ts'
import { listPages } from './client/list.ts'
import { namedCommand } from './command-texts.ts'
import { print, printJson, sentence } from './output/output.ts'

interface Options extends DaemonOptions {
  readonly source?: string
  readonly at?: string
}

/**
 * `explain FILE.json`, or `explain ID` of a running bridge: which routes and sinks would take this alert, and why the others
 * would not. Sends nothing.
 */
export function explainCommand(): Command {
  return namedCommand('explain')
    .argument(
      '<alert>',
      'SOURCE.ID of an alert that a running bridge has kept, by the config that is in force there; or a file with JSON: a delivery row of the API, the body of a webhook, or what deliveries ID --json prints; - reads standard input',
    )
    .option('--config <file>', 'the config, YAML; with an ID the address is taken from it')
    .option(
      '--source <name>',
      'the source that the alert came from; default: what the file says, or the only one',
    )
    .option(
      '--at <time>',
      'decide as of this time (ISO, or how long ago: 2h); default: now',
      instantOption('--at'),
    )
    .option(
      '--url <url>',
      'where a bridge runs, to be asked for its silences and for the rules it knows (with an ID: for all)',
      urlOption,
    )
    .option('--json', 'print JSON, with times in UTC')
    .option('--utc', 'times in UTC, and not in the zone of display.timeZone')
    .action(async (file: string, options: Options) => {
      if (/^([a-z0-9-]+\.)?\d+$/.test(asciiDigits(file)) && !existsSync(file))
        return printExplained(file, options)
      if (options.config === undefined && file !== '-' && !existsSync(file))
        throw new UsageError(`"${file}" is no file and no alert: expected SOURCE.ID, such as main.4711.`)
      if (options.config === undefined)
        throw new UsageError('--config must say by which config the alert of a file is to be routed.')
      const { config } = configOf(options.config)
      const { row, source } = await readAlertFile(file)
      const alert = alertOf(row, sourceOf(config, options.source ?? source))
      const { routes } = config
      const atMs = options.at === undefined ? Date.now() : Date.parse(options.at)
      const known = await askBridge(options.url, options.config)
      const routing = atOnce(route(alert, routes, { nowMs: atMs, ...known }))
      if (options.json) return printJson(shown(alert, routing, atMs))
      const sinks = Object.keys(config.sinks)
      const asked = options.url !== undefined
      const text = explainText({ alert, routing, routes, sinks, atMs, asked })
      print(linesOf(options.utc ? text : localSentences(text, config.display.timeZone)))
    })
}

async function printExplained(alert: string, { at, json, source: _, ...options }: Options): Promise<void> {
  const { source, id } = alertOfId(alert)
  const daemon = connectDaemon({ ...options, ...given({ json }) })
  const answer = await daemon.get(`/api/v1/alerts/${source}/${id}/routes`, given({ at }))
  const { text, ...explained } = (answer as { data: ExplanationView }).data
  if (json) printJson(explained)
  else print(linesOf(text))
}

function linesOf(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => sentence(line))
    .join('\n')
}

/** Reads a row of the API, the body of a webhook (`{data: {source, delivery}}`), or a story from the bridge's API. */
async function readAlertFile(file: string): Promise<{ row: unknown; source: string | undefined }> {
  const { name, text } = await readFileArgument(file)
  let body: unknown
  try {
    body = parseJson(text)
  } catch {
    throw new UserError(`${name}: this is no JSON`)
  }
  const data = property(body, 'data') ?? body
  const row = property(data, 'delivery') ?? data
  // In a row of the API, `source` would not be one of our sources.
  const isOurs = row !== data || property(data, 'deliveries') !== undefined
  const source = isOurs ? property(data, 'source') : undefined
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
  throw new UserError(`This is no alert, and would be quarantined: ${parsed.reason}.`)
}

/** Reads the silences and rules of the bridge at `url`; without a `url` there are none. */
async function askBridge(url: string | undefined, config: string): Promise<BridgeState> {
  if (url === undefined) return { silences: [], ruleOf: () => undefined }
  const daemon = connectDaemon({ url, config })
  const [silences, ruleOf] = await Promise.all([listPages(daemon, '/api/v1/silences', {}), rulesOf(daemon)])
  return {
    silences: silencesAnswer
      .parse(silences.data)
      .flatMap(({ id, match: written, startsAt, endsAt, comment }) => {
        const match = parseMatch(written)
        if (match === undefined) return []
        return [{ id, match, startsAtMs: Date.parse(startsAt), endsAtMs: Date.parse(endsAt), comment }]
      }),
    ruleOf,
  }
}

/** The rules that a running bridge knows. */
export async function rulesOf(daemon: Daemon): Promise<RuleLookup> {
  const { data } = await listPages(daemon, '/api/v1/rules', {})
  return ruleLookup(rulesAnswer.parse(data))
}

interface BridgeState {
  readonly silences: readonly Silence[]
  readonly ruleOf: RuleLookup
}

const silencesAnswer = z.array(
  z.object({
    id: z.string(),
    match: z.unknown(),
    startsAt: z.string(),
    endsAt: z.string(),
    comment: z.string(),
  }),
)
const rulesAnswer = z.array(z.looseObject({ source: z.string(), id: z.number() }))

function shown(alert: Alert, { sinks, decisions }: Routing, atMs: number): Omit<ExplanationView, 'text'> {
  const { source, id, kind, symbol, ruleIds } = alert
  const at = new Date(atMs).toISOString()
  return { alert: { source, id, kind, symbol, ruleIds }, at, sinks, decisions }
}

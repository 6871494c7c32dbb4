import { accessSync, constants, existsSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { scheduleOptionsOf } from '../app/source/schedule-options.ts'
import { formatMistake } from '../config/mistakes/mistake.ts'
import type { Config } from '../config/schema.ts'
import { unitsPerDayMax } from '../config/source.ts'
import { UserError } from '../lib/errors.ts'
import { hourStartMs, previewPlan } from '../schedule/preview.ts'
import { printable } from '../telemetry/printable.ts'
import { countOption } from './arguments/usage.ts'
import { namedCommand } from './command-texts.ts'
import { collectParts, configWith, type InitOptions } from './init/collect.ts'
import { offeredTypes } from './init/fields.ts'
import { freshVariables } from './init/part.ts'
import { type SinkOption, sinkOption } from './init/sink-option.ts'
import { openTerminal, type Terminal } from './init/terminal.ts'
import { configText, environmentText } from './init/text.ts'
import { print, printError, printJson } from './output/output.ts'
import { describePreview, previewJson } from './plan/picture.ts'
import { shellWord } from './shell-word.ts'

interface Options {
  readonly baseUrl?: string
  readonly tokenFile?: string
  readonly unitsPerDay?: number
  readonly sink?: readonly SinkOption[]
  readonly unchecked?: true
  readonly json?: true
}

/**
 * `init`: asks for what a first config needs, or takes it from options and the environment; tries all of it; writes the
 * config, and beside it the secrets that were typed or made. It never overwrites, and a failure writes nothing.
 */
export function initCommand(open: () => Terminal | undefined = openTerminal): Command {
  return namedCommand('init')
    .argument('[file]', 'the config to write; one that is there stays as it is', 'bridge.yaml')
    .option('--base-url <url>', 'the address of the API; otherwise MARKET_DATA_URL')
    .option('--token-file <file>', 'the file with the token; otherwise MARKET_DATA_TOKEN')
    .option(
      '--units-per-day <count>',
      'what may be spent a day',
      countOption('--units-per-day', unitsPerDayMax),
    )
    .option(
      '--sink <type[,key=value…]>',
      `${offeredTypes.join(', ')}, with keys of the config that are no secrets; may be given again`,
      sinkOption,
    )
    .option('--unchecked', 'calls nobody: neither the API nor the receivers')
    .option('--json', 'print JSON')
    .addHelpText('after', secrets)
    .action(async (file: string, options: Options) => {
      const terminal = open()
      try {
        await init(file, options, terminal)
      } finally {
        terminal?.close()
      }
    })
}

const secrets = `
Secrets come from the environment, or are asked for without being shown; the config names their variables:
  webhook WEBHOOK_URL, WEBHOOK_SECRET   slack SLACK_WEBHOOK_URL   email SMTP_URL   telegram TELEGRAM_BOT_TOKEN
  discord DISCORD_WEBHOOK_URL   teams TEAMS_WEBHOOK_URL   pagerduty PAGERDUTY_ROUTING_KEY   ntfy NTFY_TOPIC`

async function init(file: string, options: Options, terminal: Terminal | undefined): Promise<void> {
  const environmentFile = `${file.replace(/\.ya?ml$/, '')}.env`
  refuseWhereThere(file)
  refuseUnwritable(file)
  const wanted: InitOptions = {
    ...options,
    sinks: options.sink ?? [],
    ...(options.tokenFile === undefined ? {} : { tokenFile: resolve(options.tokenFile) }),
  }
  const say = options.json ? () => {} : print
  const found = await collectParts(wanted, { terminal, checked: !options.unchecked, file, say })
  const { source, sinks } = found
  const { config, warnings } = configWith(source, sinks, file)
  for (const warning of warnings) printError(`warning: ${formatMistake(file, warning)}`)
  const fresh = freshVariables([source, ...sinks])
  if (Object.keys(fresh).length > 0) refuseWhereThere(environmentFile)
  writeBoth(file, configText(source, sinks), environmentFile, environmentText(fresh))
  const plan = planOf(config)
  const written = { file, ...(Object.keys(fresh).length > 0 ? { environmentFile } : {}) }
  if (options.json)
    return printJson({ ...written, token: found.token, sinks: found.tried, plan: plan.json() })
  print(`\n${plan.text()}`)
  print(nextSteps(written))
}

function planOf(config: Config) {
  const [[name, source] = []] = Object.entries(config.sources)
  if (name === undefined || source === undefined) throw new Error('a config without a source was accepted')
  const schedule = scheduleOptionsOf(source)
  const preview = previewPlan(schedule, undefined, hourStartMs(Date.now(), schedule), 24)
  return {
    text: () => describePreview(name, schedule, preview),
    json: () => previewJson(name, schedule, preview),
  }
}

function refuseWhereThere(file: string): void {
  if (existsSync(file))
    throw new UserError(
      `${printable(file)} is there already, and stays as it is. Name another file: init FILE.`,
    )
}

/** Before anybody is asked or called, as far as it can be known. */
function refuseUnwritable(file: string): void {
  try {
    accessSync(dirname(resolve(file)), constants.W_OK)
  } catch (thrown) {
    throw notWritten(file, thrown)
  }
}

/** Both or none. `wx` fails where a file has come meanwhile. */
function writeBoth(file: string, text: string, environmentFile: string, environment: string): void {
  if (environment !== '') writeNew(environmentFile, environment, 0o600)
  try {
    writeNew(file, text, 0o644)
  } catch (thrown) {
    if (environment !== '') unlinkSync(environmentFile)
    throw thrown
  }
}

function writeNew(file: string, text: string, mode: number): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode })
  } catch (thrown) {
    throw notWritten(file, thrown)
  }
}

function notWritten(file: string, thrown: unknown): UserError {
  const reason = thrown instanceof Error ? thrown.message : 'unknown'
  return new UserError(`${printable(file)} cannot be written: ${reason}.`, { cause: thrown })
}

/** Who ran it by npx, or in a checkout, has no command named alert-bridge. */
const programsOfNpm: Readonly<Record<string, string>> = { npx: 'npx alert-bridge', cli: 'npm run -s cli --' }

function nextSteps({ file, environmentFile }: { file: string; environmentFile?: string }): string {
  const [config, environment] = [printable(file), environmentFile && printable(environmentFile)]
  const word = shellWord(config)
  const program = programsOfNpm[process.env['npm_lifecycle_event'] ?? ''] ?? 'alert-bridge'
  return [
    `Wrote ${config}${environment ? `, and ${environment} with the secrets that were not in the environment (only you can read it)` : ''}.`,
    '',
    ...(environment ? [`  set -a; . ${shellWord(resolve(environment))}; set +a`] : []),
    `  ${program} check-config ${word}`,
    `  ${program} run --config ${word}`,
  ].join('\n')
}

import type { Command } from 'commander'
import { onClock } from '../admin/own-instants.ts'
import { loadConfig } from '../config/load.ts'
import { formatMistake, type Mistake } from '../config/mistakes/mistake.ts'
import { redactConfig, showConfig } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { instantOption } from './arguments/instant.ts'
import { UsageError, urlOption } from './arguments/usage.ts'
import { connectDaemon } from './client/daemon.ts'
import { namedCommand } from './command-texts.ts'
import { compareConfig, describeComparison, readStored } from './compare-config.ts'
import { rulesOf } from './explain.ts'
import { print, printError, printJson } from './output/output.ts'

interface Options {
  readonly show?: boolean
  readonly json?: boolean
  /** ISO. */
  readonly replay?: string
  readonly url?: string
}

/** `check-config FILE`: prints each mistake on a line of stderr, with exit code 1; without mistakes, one summary line. */
export function checkConfigCommand(): Command {
  return namedCommand('check-config')
    .argument('<file>', 'the config, YAML')
    .option('--show', 'print the effective config, every default filled in, secrets redacted')
    .option(
      '--replay <span>',
      'run what a bridge has kept of this long (7d) through the config, and show what would have gone elsewhere (an alert of which a dead letter was dropped is named, and left out)',
      instantOption('--replay'),
    )
    .option(
      '--url <url>',
      'with --replay: where the bridge listens (default http.listen of the config)',
      urlOption,
    )
    .option('--json', 'print JSON')
    .action(async (file: string, options: Options) => {
      if (options.replay !== undefined && options.show)
        throw new UsageError('Either --show or --replay: each prints an answer of its own.')
      if (options.replay === undefined && options.url !== undefined)
        throw new UsageError('--url says which bridge is asked, and only --replay asks one.')
      const loaded = loadConfig(file, process.env)
      if (!loaded.ok) process.exitCode = 1
      if (loaded.ok && options.replay !== undefined) {
        printWarnings(file, loaded.warnings)
        return printReplay(file, loaded.config, { ...options, replay: options.replay })
      }
      if (options.json) return printAnswer(file, loaded, options)
      if (!loaded.ok) {
        for (const mistake of loaded.mistakes) printError(formatMistake(file, mistake))
        return printError(`${printable(file)}: ${count(loaded.mistakes.length, 'mistake')}`)
      }
      printWarnings(file, loaded.warnings)
      print(
        options.show
          ? showConfig(loaded.config, loaded.hidden).trimEnd()
          : `${printable(file)}: ${summary(loaded.config)}`,
      )
    })
}

/** Before a config is put in force: what it would have done with the alerts of before. */
async function printReplay(
  file: string,
  config: Config,
  { replay: since, url, json }: Options & { readonly replay: string },
): Promise<void> {
  const daemon = connectDaemon({ config: file, ...given({ url }), json: true })
  const [{ stored, dropped }, ruleOf] = await Promise.all([readStored(daemon, since), rulesOf(daemon)])
  const compared = { ...(await compareConfig(stored, config, ruleOf)), dropped }
  if (json) printJson({ since, ...compared })
  else print(describeComparison(compared, onClock(since, config.display.timeZone)))
}

function printWarnings(file: string, warnings: readonly Mistake[]): void {
  for (const warning of warnings) printError(`warning: ${formatMistake(file, warning)}`)
}

function printAnswer(file: string, loaded: ReturnType<typeof loadConfig>, options: Options): void {
  const answer = loaded.ok
    ? {
        ok: true,
        file,
        warnings: loaded.warnings.map((warning) => asJson(file, warning)),
        ...(options.show ? { config: redactConfig(loaded.config, loaded.hidden) } : {}),
      }
    : { ok: false, file, mistakes: loaded.mistakes.map((mistake) => asJson(file, mistake)) }
  printJson(answer)
}

/** The parts of a mistake, and the line that people read. */
function asJson(file: string, mistake: Mistake): Mistake & { text: string } {
  return { ...mistake, text: formatMistake(file, mistake) }
}

function summary(config: Config): string {
  const sources = count(Object.keys(config.sources).length, 'source')
  const sinks = count(Object.keys(config.sinks).length, 'sink')
  return `no mistakes: ${sources}, ${sinks}, ${count(config.routes.length, 'route')}`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

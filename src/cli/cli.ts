import { flushCompileCache } from 'node:module'
import { Command, CommanderError, Option } from 'commander'
import { errorCode, toError, UserError } from '../lib/errors.ts'
import { logLevels } from '../telemetry/log-level.ts'
import { version } from '../telemetry/version.ts'
import { UsageError } from './arguments/usage.ts'
import { noteAnswer, oddAnswerText } from './client/answered.ts'
import { type CommandName, commandTexts, namedCommand } from './command-texts.ts'
import { printError } from './output/output.ts'

/** Runs one command line and returns the exit code: 0, 1 for a failure, 2 for a wrong command line. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = await createProgram(argv.slice(2))
  noteAnswer(undefined)
  // Now, and not at the end, which a process that is killed does not reach.
  flushCompileCache()
  try {
    await program.parseAsync(argv)
    return typeof process.exitCode === 'number' ? process.exitCode : 0
  } catch (thrown) {
    // Commander has printed its own message already; --help and --version end here too, with code 0.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    printError(describe(thrown, program.opts()['logLevel'] === 'debug'))
    return thrown instanceof UsageError ? 2 : 1
  }
}

/** Only the commands that are a word of the command line are loaded; the others are there for `--help` to list. */
export async function createProgram(words: readonly string[]): Promise<Command> {
  const program = new Command('alert-bridge')
  program
    .description(
      'Carries fired market alerts from a read-only API to webhooks, Slack and email, within a daily request budget.',
    )
    .version(version)
    .addOption(new Option('--log-level <level>', 'how much the log says').choices(logLevels))
    .configureHelp({ subcommandTerm: (each) => `${each.name()} ${each.usage()}` })
    .configureOutput({ outputError: (text) => printError(`${oneLine(text)} (--help lists what there is)`) })
    .exitOverride()
  for (const name of commandNames) {
    const command = words.includes(name) ? await load[name]() : listed(name)
    program.addCommand(command.exitOverride().copyInheritedSettings(program))
  }
  return program
}

/** The library puts what may have been meant on a line of its own. */
function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, ' ')
}

export const commandNames = Object.keys(commandTexts) as readonly CommandName[]

function listed(name: CommandName): Command {
  return namedCommand(name).usage(commandTexts[name].usage)
}

const load: Readonly<Record<CommandName, () => Promise<Command>>> = {
  init: async () => (await import('./init.ts')).initCommand(),
  run: async () => (await import('./run.ts')).runCommand(),
  'check-config': async () => (await import('./check-config.ts')).checkConfigCommand(),
  'config-schema': async () => (await import('./config-schema.ts')).configSchemaCommand(),
  explain: async () => (await import('./explain.ts')).explainCommand(),
  'send-test': async () => (await import('./send-test.ts')).sendTestCommand(),
  status: async () => (await import('./status.ts')).statusCommand(),
  deliveries: async () => (await import('./deliveries.ts')).deliveriesCommand(),
  why: async () => (await import('./why.ts')).whyCommand(),
  'dead-letters': async () => (await import('./dead-letters.ts')).deadLettersCommand(),
  quarantine: async () => (await import('./quarantine.ts')).quarantineCommand(),
  rules: async () => (await import('./rules.ts')).rulesCommand(),
  replay: async () => (await import('./replay.ts')).replayCommand(),
  orphans: async () => (await import('./orphans.ts')).orphansCommand(),
  pause: async () => (await import('./pause.ts')).pauseCommand(),
  resume: async () => (await import('./pause.ts')).resumeCommand(),
  silence: async () => (await import('./silence.ts')).silenceCommand(),
  async plan() {
    const [{ planCommand }, { readLearned }] = await Promise.all([
      import('./plan/plan.ts'),
      import('../app/source/known.ts'),
    ])
    return planCommand(readLearned)
  },
  api: async () => (await import('./api.ts')).apiCommand(),
  async completion() {
    const { completionCommand } = await import('./completion.ts')
    return completionCommand(() => Promise.all(commandNames.map((name) => load[name]())))
  },
  sandbox: async () => (await import('./sandbox.ts')).sandboxCommand(),
  demo: async () => (await import('./demo.ts')).demoCommand(),
}

function describe(thrown: unknown, debug: boolean): string {
  const error = toError(thrown)
  if (debug) return error.stack ?? error.message
  if (thrown instanceof UserError) return error.message
  const odd = errorCode(thrown) === undefined ? oddAnswerText() : undefined
  return `${odd ?? `unexpected: ${error.name}: ${error.message}`} (--log-level debug shows more)`
}

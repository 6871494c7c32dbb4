import { Command, CommanderError, Option } from 'commander'
import { readLearned } from '../app/learned.ts'
import { toError, UserError } from '../lib/errors.ts'
import { logLevels } from '../telemetry/log.ts'
import { version } from '../telemetry/version.ts'
import { apiCommand } from './api.ts'
import { checkConfigCommand } from './check-config.ts'
import { configSchemaCommand } from './config-schema.ts'
import { deadLettersCommand } from './dead-letters.ts'
import { deliveriesCommand } from './deliveries.ts'
import { demoCommand } from './demo.ts'
import { explainCommand } from './explain.ts'
import { initCommand } from './init.ts'
import { orphansCommand } from './orphans.ts'
import { printError } from './output.ts'
import { pauseCommand, resumeCommand } from './pause.ts'
import { planCommand } from './plan.ts'
import { quarantineCommand } from './quarantine.ts'
import { replayCommand } from './replay.ts'
import { rulesCommand } from './rules.ts'
import { runCommand } from './run.ts'
import { sandboxCommand } from './sandbox.ts'
import { sendTestCommand } from './send-test.ts'
import { silenceCommand } from './silence.ts'
import { statusCommand } from './status.ts'
import { UsageError } from './usage.ts'

/** Runs one command line and returns the exit code: 0, 1 for a failure, 2 for a wrong command line. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = createProgram()
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

export function createProgram(): Command {
  const program = new Command('alert-bridge')
  program
    .description(
      'Carries fired market alerts from a read-only API to webhooks, Slack and email, within a daily request budget.',
    )
    .version(version)
    .addOption(new Option('--log-level <level>', 'how much the log says').choices(logLevels))
    .showHelpAfterError('(--help lists what there is)')
    .exitOverride()
  const commands = [
    initCommand(),
    runCommand(),
    checkConfigCommand(),
    configSchemaCommand(),
    explainCommand(),
    sendTestCommand(),
    statusCommand(),
    deliveriesCommand(),
    deadLettersCommand(),
    quarantineCommand(),
    rulesCommand(),
    replayCommand(),
    orphansCommand(),
    pauseCommand(),
    resumeCommand(),
    silenceCommand(),
    planCommand(readLearned),
    apiCommand(),
    sandboxCommand(),
    demoCommand(),
  ]
  for (const command of commands) program.addCommand(command.exitOverride().copyInheritedSettings(program))
  return program
}

function describe(thrown: unknown, debug: boolean): string {
  const error = toError(thrown)
  if (debug) return error.stack ?? error.message
  return thrown instanceof UserError
    ? error.message
    : `unexpected: ${error.name}: ${error.message} (--log-level debug shows more)`
}

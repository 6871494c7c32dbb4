import { type Command, Option } from 'commander'
import { createApp } from '../app/app.ts'
import { type Role, roles } from '../app/roles.ts'
import { untilSignal } from '../app/signal.ts'
import { loadConfig } from '../config/load.ts'
import { formatMistake } from '../config/mistakes/mistake.ts'
import { createLogger, type LogLevel, setLogLevel } from '../telemetry/log.ts'
import { configOf } from './arguments/config-file.ts'
import { namedCommand } from './command-texts.ts'

/** `run`: the daemon. On SIGTERM and SIGINT it finishes running sends and stops, on SIGHUP it reloads the config. */
export function runCommand(): Command {
  return namedCommand('run')
    .requiredOption('--config <file>', 'the config')
    .addOption(new Option('--role <role>', 'what this process does').choices(roles).default('all'))
    .action(async (options: { config: string; role: Role }, command: Command) => {
      const { logLevel } = command.optsWithGlobals<{ logLevel?: LogLevel }>()
      await runDaemon({ configPath: options.config, role: options.role, ...(logLevel ? { logLevel } : {}) })
    })
}

async function runDaemon(options: { configPath: string; role: Role; logLevel?: LogLevel }): Promise<void> {
  const { configPath, role } = options
  const load = () => loadConfig(configPath, process.env, { again: true })
  const loaded = configOf(configPath)
  const level = options.logLevel ?? loaded.config.log.level
  const log = createLogger({ level, terminal: process.stdout.isTTY === true })
  for (const warning of loaded.warnings) log.warn(formatMistake(configPath, warning))

  const app = createApp(loaded.config, {
    log,
    role,
    load,
    // A level on the command line is used as long as the process runs, also after reloads.
    setLogLevel: (next) => setLogLevel(log, options.logLevel ?? next),
  })
  const early = stopSignals.flatMap((name) => process.listeners(name).map((listener) => ({ name, listener })))
  const stopAsked = untilSignal(stopSignals, (signal) =>
    log.info({ signal }, 'stopping already: it ends when the last send is over'),
  )
  // Those of `main.ts`. Removed last: a signal that came while this process was loading is lost with the last listener.
  for (const { name, listener } of early) process.off(name, listener)
  process.on('SIGHUP', () => {
    void app.reload().then((result) => {
      if (!result.ok) log.error({ mistakes: result.mistakes }, 'reload.refused')
    })
  })
  try {
    const why = await Promise.race([app.start().then(() => stopAsked), stopAsked, app.failed])
    if (why instanceof Error) throw why
    log.info({ signal: why }, 'stopping')
  } finally {
    await app.stop()
  }
}

const stopSignals = ['SIGTERM', 'SIGINT'] as const

import type { Command } from 'commander'
import type { LogLevel } from '../telemetry/log.ts'
import { UsageError } from './arguments/usage.ts'
import { namedCommand } from './command-texts.ts'

/** `demo`: the whole bridge against the built-in sandbox API and receivers on this machine. */
export function demoCommand(): Command {
  return namedCommand('demo')
    .option('--seconds <count>', 'stop after so long, print a summary; exit 0 only when everything arrived')
    .option('--rate <count>', 'alerts a minute', '40')
    .option('--json', 'print the summary as JSON')
    .action(async (options: { seconds?: string; rate: string; json?: boolean }, command: Command) => {
      const { logLevel } = command.optsWithGlobals<{ logLevel?: LogLevel }>()
      const { runDemo } = await import('../app/demo.ts')
      const complete = await runDemo({
        ...(options.seconds === undefined ? {} : { seconds: positive(options.seconds, '--seconds') }),
        ratePerMinute: positive(options.rate, '--rate'),
        json: options.json === true,
        ...(logLevel ? { logLevel } : {}),
      })
      if (!complete) process.exitCode = 1
    })
}

function positive(text: string, option: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0 && value <= 86_400) return value
  throw new UsageError(`${option}: "${text}" is not a number above 0 and up to 86400.`)
}

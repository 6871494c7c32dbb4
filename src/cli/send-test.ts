import type { Command } from 'commander'
import type { AlertContext, ContextName } from '../alert/context.ts'
import { sampleAlert, sampleContext } from '../alert/sample.ts'
import type { Display } from '../alert/text/display.ts'
import { systemClock } from '../lib/clock.ts'
import { UserError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { createDrawer } from '../sinks/chart/drawer.ts'
import type { Outcome } from '../sinks/outcome.ts'
import { createSink, type SinkConfig } from '../sinks/registry.ts'
import { configOf } from './arguments/config-file.ts'
import { namedCommand } from './command-texts.ts'
import { isolated, print, printJson, withoutText } from './output/output.ts'

interface Options {
  readonly config: string
  readonly json?: boolean
}

/** What one target of a sink answered to a sample alert. */
export interface Tried {
  readonly sink: string
  readonly target?: string
  readonly result: Outcome['kind']
  readonly reason?: string
  readonly status?: number
  readonly text: string
  readonly durationMs: number
  /** Of the sample of a context, what the sink had to leave out. */
  readonly skipped?: AlertContext['skipped']
}

/** `send-test SINK`: sends one sample alert through the real sink, to each of its targets; prints the answers. */
export function sendTestCommand(): Command {
  return namedCommand('send-test')
    .argument('<sink>', 'the name of the sink in the config')
    .requiredOption('--config <file>', 'the config')
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => {
      const results = await sendTest(name, options.config)
      if (options.json) printJson(results)
      else for (const result of results) print(describeTried(result))
      if (results.some(({ result }) => result !== 'delivered')) process.exitCode = 1
    })
}

async function sendTest(name: string, configPath: string): Promise<Tried[]> {
  const loaded = configOf(configPath)
  const config = new Map(Object.entries(loaded.config.sinks)).get(name)
  if (!config) {
    const known = Object.keys(loaded.config.sinks).join(', ')
    throw new UserError(`There is no sink "${name}" in ${configPath}; there are ${known}.`)
  }
  const routes = loaded.config.routes.filter(({ sinks }) => sinks.includes(name))
  const context = [...new Set(routes.flatMap((route) => route.context))]
  return trySink(name, config, loaded.config.display, context)
}

/** Sends one sample alert, with a sample of this context, through the real sink, to each of its targets. */
export async function trySink(
  name: string,
  config: SinkConfig,
  display: Display,
  names: readonly ContextName[] = [],
): Promise<Tried[]> {
  const drawer = createDrawer({ waitMsMax: chartWaitMsMax })
  const sink = createSink(name, config, { display, drawer })
  try {
    const results: Tried[] = []
    for (const target of sink.targets) {
      const [nowMs, fromMs] = [systemClock.now(), systemClock.monotonicMs()]
      const context = names.length === 0 ? {} : { context: sampleContext(names, nowMs) }
      const attempt = { number: 1, signal: new AbortController().signal, nowMs, ...context }
      const outcome = await sink.send(
        sampleAlert(nowMs),
        target === undefined ? attempt : { ...attempt, target },
      )
      results.push(resultOf(name, target, outcome, Math.round(systemClock.monotonicMs() - fromMs)))
    }
    return results
  } finally {
    await sink.close()
    await drawer.close()
  }
}

/** The thread that draws starts with the first chart; of the sink's time-out it may take a quarter. */
const chartWaitMsMax = 10_000

function resultOf(sink: string, target: string | undefined, outcome: Outcome, durationMs: number): Tried {
  const { status, text } = outcome.answer
  const more = outcome.kind === 'delivered' ? { skipped: outcome.skipped } : { reason: outcome.reason }
  return { sink, ...given({ target }), result: outcome.kind, ...given({ ...more, status }), text, durationMs }
}

export function describeTried(tried: Tried): string {
  const { sink, target, result, reason, status, text, durationMs } = tried
  const what = result === 'delivered' ? 'delivered' : `not delivered (${reason})`
  const answer = [status, isolated(text)].filter((part) => part !== undefined && part !== '').join(' ')
  const without = withoutText(tried.skipped)
  return `${sink}${target ? ` to ${target}` : ''}: ${what}${without && ` ${without}`} in ${durationMs} ms${answer && `: ${answer}`}`
}

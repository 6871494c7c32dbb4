import type { Command } from 'commander'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { print, printJson } from './output.ts'
import { spanOption } from './usage.ts'

interface Options extends DaemonOptions {
  readonly for?: string
  readonly comment?: string
}

/** `pause SINK`: its queue waits in all replicas, also after restarts, until the time is over or `resume SINK`. */
export function pauseCommand(): Command {
  return sinkCommand('pause')
    .option('--for <duration>', 'for so long: 30m; without it, until it is resumed', spanOption('--for'))
    .option('--comment <text>', 'why, for the others')
}

export function resumeCommand(): Command {
  return sinkCommand('resume')
}

function sinkCommand(verb: 'pause' | 'resume'): Command {
  return daemonCommand(namedCommand(verb))
    .argument('<sink>', 'the name of the sink')
    .action(async (sink: string, { for: span, comment, ...options }: Options) => {
      const path = `/api/v1/sinks/${encodeURIComponent(sink)}/${verb}`
      const answer = await connectDaemon(options).post(path, given({ for: span, comment }))
      const { until } = answer as { until?: string }
      if (options.json) printJson(answer)
      else
        print(
          printable(`${sink} is ${verb === 'pause' ? 'paused' : 'active'}${until ? ` until ${until}` : ''}`),
        )
    })
}

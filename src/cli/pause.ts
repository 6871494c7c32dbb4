import type { Command } from 'commander'
import type { StatusView } from '../admin/views/status-view.ts'
import { given } from '../lib/given.ts'
import { spanOption } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { namedCommand } from './command-texts.ts'
import { isolated, print, printableLine, printJson } from './output/output.ts'

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
      const daemon = connectDaemon(options)
      const replaced = verb === 'pause' ? await pauseOf(daemon, sink) : ''
      const answer = await daemon.post(path, given({ for: span, comment }))
      const { until } = answer as { until?: string }
      if (options.json) printJson(answer)
      else
        print(
          printableLine(
            `${sink} is ${verb === 'pause' ? 'paused' : 'active'}${until ? ` until ${until}` : ''}${replaced}`,
          ),
        )
    })
}

/** The pause that is there may be another operator's, who counts on its end: a command shows nothing of it before. */
async function pauseOf(daemon: Daemon, name: string): Promise<string> {
  const status = (await daemon.get('/api/v1/status').catch(() => undefined)) as StatusView | undefined
  const sink = status?.sinks.find((each) => each.name === name)
  if (sink?.state !== 'paused') return ''
  const until = sink.pausedUntil === null ? '' : ` until ${sink.pausedUntil}`
  return `; this replaces its pause${until}${sink.reason ? ` (${isolated(sink.reason)})` : ''}`
}

import type { Command } from 'commander'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { print, printJson } from './output.ts'

/** `pause SINK`: its queue waits in all replicas, also after restarts, until `resume SINK`. */
export function pauseCommand(): Command {
  return sinkCommand('pause', 'let a sink rest: its alerts wait in the queue')
}

export function resumeCommand(): Command {
  return sinkCommand('resume', 'let a paused sink go on')
}

function sinkCommand(verb: 'pause' | 'resume', description: string): Command {
  return daemonCommand(verb, description)
    .argument('<sink>', 'the name of the sink')
    .action(async (sink: string, options: DaemonOptions) => {
      const answer = await connectDaemon(options).post(`/api/v1/sinks/${encodeURIComponent(sink)}/${verb}`)
      if (options.json) printJson(answer)
      else print(`${sink} is ${verb === 'pause' ? 'paused' : 'active'}`)
    })
}

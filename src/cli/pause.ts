import type { Command } from 'commander'
import { namedCommand } from './command-texts.ts'
import { connectDaemon, type DaemonOptions, daemonCommand } from './daemon.ts'
import { print, printJson } from './output.ts'

/** `pause SINK`: its queue waits in all replicas, also after restarts, until `resume SINK`. */
export function pauseCommand(): Command {
  return sinkCommand('pause')
}

export function resumeCommand(): Command {
  return sinkCommand('resume')
}

function sinkCommand(verb: 'pause' | 'resume'): Command {
  return daemonCommand(namedCommand(verb))
    .argument('<sink>', 'the name of the sink')
    .action(async (sink: string, options: DaemonOptions) => {
      const answer = await connectDaemon(options).post(`/api/v1/sinks/${encodeURIComponent(sink)}/${verb}`)
      if (options.json) printJson(answer)
      else print(`${sink} is ${verb === 'pause' ? 'paused' : 'active'}`)
    })
}

import { Command } from 'commander'

/**
 * What `--help` lists. It is all of a command that is known before its file is loaded: the files load nearly the whole
 * program, and a command line needs one of them.
 */
export const commandTexts = {
  init: {
    usage: '[options] [file]',
    does: 'asks for what a config needs, checks the token, tries each sink, and writes the config',
  },
  run: { usage: '[options]', does: 'run the bridge; SIGTERM drains it, SIGHUP reads the config again' },
  'check-config': {
    usage: '[options] <file>',
    does: 'validate a config: every mistake with its place, what was found and what would do',
  },
  'config-schema': { usage: '[options]', does: 'print the JSON Schema of the config' },
  explain: {
    usage: '[options] <file>',
    does: 'which routes and sinks would take this alert, and why the others would not',
  },
  'send-test': {
    usage: '[options] <sink>',
    does: 'send one sample alert through the real sink and print what came back',
  },
  status: {
    usage: '[options]',
    does: 'what is wrong, sources, sinks, lag and budget; exit code 1 when not ready',
  },
  deliveries: { usage: '[options] [id]', does: 'the newest deliveries, or the whole history of one alert' },
  'dead-letters': {
    usage: '[options] <action> [ids...]',
    does: 'what could not be delivered: list, retry or drop',
  },
  quarantine: {
    usage: '[options] <action> [ids...]',
    does: 'rows of the feed that could not be read: list, retry or drop',
  },
  rules: {
    usage: '[options]',
    does: 'the alert rules as the bridge last read them: which may not fire, and when each last fired',
  },
  replay: {
    usage: '[options] [ids...]',
    does: 'send alerts again on purpose: by id, or all that fired in a span',
  },
  orphans: {
    usage: '[options] <action> [name]',
    does: 'what is left of sinks and sources that left the config: list, move or drop',
  },
  pause: { usage: '[options] <sink>', does: 'let a sink rest: its alerts wait in the queue' },
  resume: { usage: '[options] <sink>', does: 'let a paused sink go on' },
  silence: { usage: '[options] [command]', does: 'hold alerts back for a while, over all routes' },
  plan: {
    usage: '[options]',
    does: 'the polling plan that the budget buys; with --trace, a history through the live planner',
  },
  api: {
    usage: '[options] <method> <path>',
    does: 'one call of the Market Data Read API, or with --all every page of a list; prints the answer as JSON',
  },
  sandbox: {
    usage: '[options]',
    does: 'serves the Market Data Read API, all 17 endpoints, with synthetic data, to develop against',
  },
  demo: {
    usage: '[options]',
    does: 'run the whole bridge against the built-in sandbox API, with receivers on this machine',
  },
} as const satisfies Readonly<Record<string, CommandText>>

export type CommandName = keyof typeof commandTexts

interface CommandText {
  /** As commander makes it of the options and arguments. */
  readonly usage: string
  readonly does: string
}

/** A command with its name and what `--help` says of it. */
export function namedCommand(name: CommandName): Command {
  return new Command(name).description(commandTexts[name].does)
}

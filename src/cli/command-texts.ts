import { Command } from 'commander'

/**
 * What `--help` lists. It is all of a command that is known before its file is loaded: the files load nearly the whole
 * program, and a command line needs one of them.
 */
export const commandTexts = {
  init: {
    usage: '[options] [file]',
    does: 'asks for what a config needs, checks the token, tries each sink, and writes the config',
    examples: [
      'init',
      'init bridge.yaml --base-url https://api.example.com --token-file token --sink slack',
      'init bridge.yaml --sink "email,from=Alerts <alerts@example.com>,to=desk@example.com"',
    ],
  },
  run: {
    usage: '[options]',
    does: 'run the bridge; SIGTERM drains it, SIGHUP reads the config again',
    examples: ['run --config bridge.yaml', 'run --config bridge.yaml --role sender'],
  },
  'check-config': {
    usage: '[options] <file>',
    does: 'validate a config: every mistake with its place, what was found and what is expected',
    examples: [
      'check-config bridge.yaml',
      'check-config bridge.yaml --show',
      'check-config next.yaml --replay 7d',
    ],
  },
  'config-schema': {
    usage: '[options]',
    does: 'print the JSON Schema of the config',
    examples: ['config-schema > bridge.schema.json'],
  },
  explain: {
    usage: '[options] <alert>',
    does: 'which routes and sinks would take this alert, and why the others would not',
    examples: [
      'explain main.4711',
      'explain alert.json --config bridge.yaml',
      'deliveries main.4711 --json | alert-bridge explain - --config bridge.yaml',
    ],
  },
  'send-test': {
    usage: '[options] <sink>',
    does: 'send one sample alert through the real sink and print what came back',
    examples: ['send-test ops-slack --config bridge.yaml'],
  },
  status: {
    usage: '[options]',
    does: 'what is wrong, sources, sinks, lag and budget; exit code 1 when not ready',
    examples: ['status', 'status --watch', 'status --url http://10.0.0.7:8080 --json'],
  },
  deliveries: {
    usage: '[options] [id]',
    does: 'the deliveries of the alerts that fired last, or the whole story of one',
    examples: [
      'deliveries --follow',
      'deliveries main.4711',
      'deliveries --state held',
      'deliveries --sink ops-slack --state dead',
      'deliveries --symbol فولاد --since 2d',
    ],
  },
  why: {
    usage: '[options] <id>',
    does: 'what became of an alert, also of one that was never seen: what the bridge knows around it',
    examples: ['why main.4711'],
  },
  'dead-letters': {
    usage: '[options] <action> [ids...]',
    does: 'what could not be delivered: list, retry or drop',
    examples: [
      'dead-letters list --sink ops-slack',
      'dead-letters retry --sink ops-slack --reason rejected --dry-run',
      'dead-letters drop main.4711',
    ],
  },
  quarantine: {
    usage: '[options] <action> [ids...]',
    does: 'rows of the feed that could not be read: list, retry or drop',
    examples: ['quarantine list', 'quarantine retry --all'],
  },
  rules: {
    usage: '[options]',
    does: 'the alert rules as the bridge last read them: which may not fire, and when each last fired',
    examples: ['rules'],
  },
  replay: {
    usage: '[options] [ids...]',
    does: 'send alerts again on purpose: by id, or all that fired in a span',
    examples: ['replay main.4711 --sink ops-slack', 'replay --since 2h --dry-run'],
  },
  orphans: {
    usage: '[options] <action> [name]',
    does: 'what is left of sinks and sources that left the config: list, move or drop',
    examples: ['orphans list', 'orphans move old-slack --to ops-slack --dry-run'],
  },
  pause: {
    usage: '[options] <sink>',
    does: 'pause a sink: its alerts wait in the queue',
    examples: ['pause ops-slack', "pause ops-slack --for 30m --comment 'they migrate'"],
  },
  resume: { usage: '[options] <sink>', does: 'resume a paused sink', examples: ['resume ops-slack'] },
  silence: {
    usage: '[options] [command]',
    does: 'hold alerts back for a while, over all routes',
    examples: ["silence add --match symbol=فولاد --for 2h --comment 'known'", 'silence list'],
  },
  plan: {
    usage: '[options]',
    does: 'the polling plan that the budget buys; with --trace, a history through the live planner',
    examples: [
      'plan --config bridge.yaml',
      'plan --url http://10.0.0.7:8080',
      'plan --trace firings.txt --units-per-day 500',
    ],
  },
  api: {
    usage: '[options] <method> <path>',
    does: 'one call of the Market Data Read API, or with --all every page of a list; prints the answer as JSON',
    examples: ['api GET /api/v1/instruments/foolad/prices --query days=30 --config bridge.yaml'],
  },
  completion: {
    usage: '[options] <shell>',
    does: 'print what makes bash, zsh or fish complete commands and options',
    examples: ['completion bash > /etc/bash_completion.d/alert-bridge', 'completion fish | source'],
  },
  sandbox: {
    usage: '[options]',
    does: 'serves the Market Data Read API, all 17 endpoints, with synthetic data, to develop against',
    examples: ['sandbox --rate 30/m'],
  },
  demo: {
    usage: '[options]',
    does: 'run the whole bridge against the built-in sandbox API, with receivers on this machine',
    examples: ['demo --seconds 20'],
  },
} as const satisfies Readonly<Record<string, CommandText>>

export type CommandName = keyof typeof commandTexts

interface CommandText {
  /** As commander makes it of the options and arguments. */
  readonly usage: string
  readonly does: string
  /** Without the name of the program. */
  readonly examples: readonly string[]
}

/** A command with its name and what `--help` says of it. */
export function namedCommand(name: CommandName): Command {
  const { does, examples } = commandTexts[name]
  return withExamples(new Command(name).description(does), examples)
}

export function withExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((each) => `  alert-bridge ${each}`)
  return command.addHelpText('after', ['', 'Examples:', ...lines].join('\n'))
}

import { Argument, type Command } from 'commander'
import { namedCommand } from './command-texts.ts'
import { print } from './output/output.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/** `completion SHELL`: prints what makes the shell complete commands and options. */
export function completionCommand(allCommands: () => Promise<readonly Command[]>): Command {
  return namedCommand('completion')
    .addArgument(new Argument('<shell>', 'for which shell').choices(shells))
    .action(async (shell: (typeof shells)[number]) => {
      const commands = (await allCommands()).map(wordsOf)
      print(shell === 'fish' ? fishScript(commands) : bashScript(commands, shell))
    })
}

interface Words {
  readonly name: string
  readonly does: string
  readonly options: readonly { readonly long: string; readonly does: string }[]
  /** Actions and subcommands. */
  readonly words: readonly string[]
}

function wordsOf(command: Command): Words {
  const options = [command, ...command.commands].flatMap((each) => each.options)
  const longs = new Map(
    options.flatMap(({ long, description }) => (long ? [[long, description] as const] : [])),
  )
  const [action] = command.registeredArguments
  const actions =
    action?.name() === 'action' ? [...action.description.matchAll(/\b(list|retry|drop|move)\b/g)] : []
  return {
    name: command.name(),
    does: command.description(),
    options: [...longs].map(([long, does]) => ({ long, does })),
    words: [
      ...new Set([
        ...command.commands.map((each) => each.name()),
        ...actions.map(([word]) => word),
        ...(action?.argChoices ?? []),
      ]),
    ],
  }
}

function bashScript(commands: readonly Words[], shell: 'bash' | 'zsh'): string {
  const cases = commands.map(
    ({ name, options, words }) =>
      `    ${name}) words="${[...words, ...options.map(({ long }) => long)].join(' ')}" ;;`,
  )
  const lines = [
    ...(shell === 'zsh' ? zshStart : []),
    '_alert_bridge() {',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's variable
    '  local word="${COMP_WORDS[COMP_CWORD]}" words="" each command=""',
    // An arithmetic expansion, since zsh takes a length that begins with a letter for a modifier.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's variable
    '  for each in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do',
    '    case "$each" in -*) ;; *) command="$each"; break ;; esac',
    '  done',
    '  case "$command" in',
    ...cases,
    `    *) words="${commands.map(({ name }) => name).join(' ')} --help --version" ;;`,
    '  esac',
    // Options once one is begun: where they came with every empty word, no file would be offered.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's variable
    '  [ -n "$word" ] || words="${words%%--*}"',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _alert_bridge alert-bridge',
  ]
  return lines.join('\n')
}

/** An empty .zshrc, as on a new Mac, has no completion yet, and bash's way needs it. */
const zshStart = [
  'whence compdef > /dev/null || { autoload -U compinit && compinit -i; }',
  'autoload -U +X bashcompinit && bashcompinit',
]

function fishScript(commands: readonly Words[]): string {
  const base = 'complete -c alert-bridge'
  const names = commands.map(({ name }) => name).join(' ')
  return commands
    .flatMap(({ name, does, options, words }) => [
      `${base} -f -n 'not __fish_seen_subcommand_from ${names}' -a ${name} -d ${quoted(does)}`,
      ...words.map((word) => `${base} -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
      ...options.map(({ long, does: what }) => {
        return `${base} -n '__fish_seen_subcommand_from ${name}' -l ${long.replace(/^--/, '')} -d ${quoted(what)}`
      }),
    ])
    .join('\n')
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

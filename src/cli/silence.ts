import { Command } from 'commander'
import { formatCount } from '../admin/page/words/en.ts'
import type { SilencePreview } from '../admin/ports.ts'
import type { SilenceView } from '../admin/views/delivery-view.ts'
import { type AlertField, alertFields, type RuleField, ruleFields } from '../alert/match/fields.ts'
import { UserError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { printable } from '../telemetry/printable.ts'
import { isoOption, spanOption, UsageError } from './arguments/usage.ts'
import { connectDaemon, type Daemon, type DaemonOptions, daemonCommand } from './client/daemon.ts'
import { listPages } from './client/list.ts'
import { namedCommand, withExamples } from './command-texts.ts'
import { print, printJson } from './output/output.ts'
import { table } from './output/table.ts'

interface AddOptions extends DaemonOptions {
  readonly match: readonly string[]
  readonly for?: string
  readonly until?: string
  readonly comment?: string
}

/** `silence add|list|expire`: withholds the alerts of a match for a while. They are recorded, with the reason. */
export function silenceCommand(): Command {
  const command = namedCommand('silence')
  for (const sub of [addCommand(), listCommand(), expireCommand()]) command.addCommand(sub.exitOverride())
  return command
}

function addCommand(): Command {
  return daemonCommand(
    subcommand('add', 'a new silence, from now on', "add --match symbol=فولاد --for 2h --comment 'known'"),
  )
    .option(
      '--match <field=value>',
      'which alerts: FIELD=VALUE, != not, =~ regex, !~ not the regex, *= glob; again for more: all fields must agree, with any value of one, and with none of its != and !~',
      (given: string, before: readonly string[]) => [...before, given],
      [],
    )
    .option('--for <duration>', 'for so long: 2h', spanOption('--for'))
    .option('--until <time>', 'or until this time, ISO with its offset', isoOption('--until'))
    .option('--comment <text>', 'why, for the others')
    .action(async ({ match, for: span, until, comment, ...options }: AddOptions) => {
      if (match.length === 0)
        throw new UsageError('Say which alerts: --match FIELD=VALUE, such as --match symbol=فولاد.')
      if ((span === undefined) === (until === undefined))
        throw new UsageError('Say when it ends: either --for or --until.')
      const order = {
        match: matchOf(match),
        ...given({ for: span, endsAt: until, comment }),
      }
      const daemon = connectDaemon(options)
      const answer = (await daemon.post('/api/v1/silences', order)) as { data: SilenceView }
      if (options.json) return printJson(answer.data)
      const { id, endsAt } = answer.data
      print(printable(`silence ${id} is set until ${endsAt}${await matchingText(daemon, match)}`))
    })
}

/** How many alerts the silence would have matched; empty where the bridge does not say, since the silence is set all the same. */
async function matchingText(daemon: Daemon, given: readonly string[]): Promise<string> {
  const asked = daemon.post('/api/v1/silences/preview', { match: matchOf(given) })
  const answer = await asked.catch((thrown: unknown) => {
    if (thrown instanceof UserError) return undefined
    throw thrown
  })
  const { matching, looked, partial } = (answer ?? {}) as Partial<SilencePreview>
  if (typeof matching !== 'number' || typeof looked !== 'number') return ''
  const plain = given.map((text) => matcherForm.exec(text) ?? []).find(isPatternAsText)
  const [text, field, , value] = matching === 0 && plain ? plain : []
  const hint =
    text === undefined ? '' : ` (${text} is compared as it is written: ${field}*=${value} is the pattern)`
  const rest = partial ? ' (there are more than could be looked at in time)' : ''
  return `; ${formatCount(matching)} of the ${formatCount(looked)} alerts of the last day would have matched${rest}${hint}`
}

function isPatternAsText([, , operator, value = '']: readonly string[]): boolean {
  return operator === '=' && value.includes('*')
}

function subcommand(name: string, does: string, example: string): Command {
  return withExamples(new Command(name).description(does), [`silence ${example}`])
}

function listCommand(): Command {
  return daemonCommand(subcommand('list', 'the silences that have not ended', 'list')).action(
    async (options: DaemonOptions) => {
      const { data } = await listPages<SilenceView>(connectDaemon(options), '/api/v1/silences', {})
      if (options.json) return printJson(data)
      if (data.length === 0) return print('none')
      const rows = data.map(({ id, startsAt, endsAt, match, comment, problem }) => {
        return [id, startsAt, endsAt, JSON.stringify(match), problem ?? (comment || '-')]
      })
      return print(table(['ID', 'FROM', 'UNTIL', 'MATCH', 'COMMENT'], rows))
    },
  )
}

function expireCommand(): Command {
  return daemonCommand(subcommand('expire', 'end a silence now', 'expire 1f2e3d4c'))
    .argument('<id>', 'as list shows it')
    .action(async (id: string, options: DaemonOptions) => {
      const answer = await connectDaemon(options).remove(`/api/v1/silences/${encodeURIComponent(id)}`)
      if (options.json) printJson(answer)
      else print(`silence ${id} has ended`)
    })
}

const matcherForm = /^([A-Za-z.]+)(!=|=~|!~|\*=|=)(.+)$/s

type Written = string | Readonly<Record<string, unknown>>

/**
 * Parses `symbol=a`, `headline=~b`, `rule.name*=c*` to a match. A field that is given again matches any of its values.
 * Several `!=` or `!~` must all be true: if one were enough, every alert would match and would be withheld.
 */
export function matchOf(given: readonly string[]): Record<string, unknown> {
  const fields: Record<string, Written[]> = {}
  const rule: Record<string, Written[]> = {}
  for (const text of given) {
    const parsed = matcherForm.exec(text)
    const [, name = '', operator = '', value = ''] = parsed ?? []
    const place = name.startsWith('rule.') ? rule : fields
    const field = name.replace(/^rule\./, '')
    const isKnown = (place === rule ? ruleFields : alertFields).some(
      (each: AlertField | RuleField) => each === field,
    )
    if (!isKnown)
      throw new UsageError(
        `--match "${text}": expected FIELD=VALUE with a field of ${alertFields.join(', ')}, or rule.name and its like.`,
      )
    place[field] = [...(place[field] ?? []), written(operator, value)]
  }
  const flat = (of: typeof fields, prefix: string) =>
    Object.fromEntries(
      Object.entries(of).map(([field, values]) => [field, flagOr(field, together(prefix + field, values))]),
    )
  return { ...flat(fields, ''), ...(Object.keys(rule).length === 0 ? {} : { rule: flat(rule, 'rule.') }) }
}

function written(operator: string, value: string): Written {
  switch (operator) {
    case '!=':
      return { not: value }
    case '=~':
      return { regex: value }
    case '!~':
      return { not: { regex: value } }
    case '*=':
      return { glob: value }
    default:
      return value
  }
}

function together(field: string, values: readonly Written[]): readonly Written[] {
  const refused = values.flatMap((value) =>
    typeof value === 'object' && 'not' in value ? [value['not']] : [],
  )
  if (refused.length === 0 || values.length === 1) return values
  if (refused.length === values.length) return [{ not: refused }]
  throw new UsageError(
    `--match ${field}: what is wanted and what is not cannot be said of one field together.`,
  )
}

/** Fields that are true or false take one such value; the others keep their list. */
function flagOr(field: string, values: readonly Written[]): unknown {
  const [only] = values
  if (!['isRead', 'isActive', 'isPrivate', 'mine'].includes(field)) return values
  if (only === 'true' || only === 'false') return only === 'true'
  throw new UsageError(`--match ${field}: expected true or false.`)
}

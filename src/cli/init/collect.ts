import { dirname, resolve } from 'node:path'
import { parseConfig } from '../../config/load.ts'
import { heldIn } from '../../config/mistakes/describe-value.ts'
import { formatMistake } from '../../config/mistakes/mistake.ts'
import { UserError } from '../../lib/errors.ts'
import { UsageError } from '../arguments/usage.ts'
import { describeTried, type Tried, trySink } from '../send-test.ts'
import { checkToken, type TokenCheck } from './checks.ts'
import { baseUrlQuestion, type Field, isOffered, offeredTypes, sinkFields, tokenQuestion } from './fields.ts'
import { type Entry, entryOf, freshVariables, type Origin, type Part } from './part.ts'
import type { SinkOption } from './sink-option.ts'
import type { Terminal } from './terminal.ts'
import { configText } from './text.ts'

/** Collects a source and its sinks, and tries each part as soon as it is complete. */

export interface InitOptions {
  readonly baseUrl?: string
  readonly tokenFile?: string
  readonly unitsPerDay?: number
  readonly sinks: readonly SinkOption[]
}

interface Context {
  /** Where a person can be asked. */
  readonly terminal: Terminal | undefined
  /** Whether the API and the receivers are called. */
  readonly checked: boolean
  /** The config that is to be written. */
  readonly file: string
  readonly say: (text: string) => void
}

interface Collected {
  readonly source: Part
  readonly sinks: readonly Part[]
  readonly token: TokenCheck | undefined
  readonly tried: readonly Tried[]
}

type Answers = { readonly part: Part } | { readonly missing: readonly string[] }
type Collect = (again: boolean) => Promise<Answers>
/** Throws a UserError over what is wrong. */
type Check = (part: Part) => Promise<void>

/** What keeps this sink from its receiver is that it may not reach private networks. */
class PrivateAddress extends UserError {}

export async function collectParts(wanted: InitOptions, context: Context): Promise<Collected> {
  const { terminal, checked, file, say } = context
  const collectSource: Collect = (again) => sourceOf(wanted, again, terminal)
  if (terminal === undefined) await refuseMissing([collectSource, ...sinkCollectors(wanted.sinks, context)])

  let token: TokenCheck | undefined
  const source = await settle(collectSource, terminal, async (part) => {
    const { main } = configWith(part, [placeholder], file).config.sources
    if (!checked || main === undefined) return
    const found = await checkToken(main.baseUrl, main.token)
    if (!found.ok) throw new UserError(`${found.text.replace(/\.$/, '')}.`)
    token = found
    say(`main: ${found.text}`)
  })

  const options = wanted.sinks.length > 0 || terminal === undefined ? wanted.sinks : await askSinks(terminal)
  const sinks: Part[] = []
  const tried: Tried[] = []
  for (const collect of sinkCollectors(options, context)) {
    const part = await settle(collect, terminal, async (part) => {
      const { sinks: configs, display } = configWith(source, [part], file).config
      const config = configs[part.name]
      if (!checked || config === undefined) return
      const results = await trySink(part.name, config, display)
      const texts = results.map(describeTried)
      const refused = results.filter(({ result }) => result !== 'delivered')
      if (refused.length > 0) {
        const isPrivate =
          config.allowPrivateNetworks === false && refused.every(({ reason }) => reason === 'blocked_address')
        const Refusal = isPrivate ? PrivateAddress : UserError
        throw new Refusal(`${texts.join('\n')}.`)
      }
      tried.push(...results)
      for (const text of texts) say(text)
    })
    sinks.push(part)
  }
  return { source, sinks, token, tried }
}

/** Collects a part until its check accepts it, or a person says that it stays as it is. */
async function settle(collect: Collect, terminal: Terminal | undefined, check: Check): Promise<Part> {
  for (let answers = await collect(false); ; ) {
    if ('missing' in answers)
      throw new UserError(`Without ${answers.missing.join(', ')} there is no config. Nothing was written.`)
    const { part } = answers
    try {
      const checked = check(part)
      await (terminal === undefined ? checked : Promise.race([checked, terminal.interrupted]))
      return part
    } catch (thrown) {
      if (!(thrown instanceof UserError)) throw thrown
      if (terminal === undefined)
        throw new UserError(`${thrown.message}\nNothing was written; with --unchecked nobody is called.`)
      const isPrivate = thrown instanceof PrivateAddress
      const way = await askWay(terminal, thrown.message, isPrivate)
      if (way === 'keep') return part
      const allowed: Entry = { key: 'allowPrivateNetworks', value: true }
      answers =
        way === 'allow' ? { part: { ...part, entries: [...part.entries, allowed] } } : await collect(true)
    }
  }
}

/** Until it is answered: what else is typed here may be meant for the next question. */
async function askWay(
  terminal: Terminal,
  refusal: string,
  isPrivate: boolean,
): Promise<'again' | 'keep' | 'allow'> {
  const ways = isPrivate ? ', or allow this sink to reach private networks? [Y/n/allow]' : '? [Y/n]'
  for (;;) {
    const answer = await terminal.ask(`${refusal}\nType it again${ways}`)
    if (/^(y|yes)?$/i.test(answer)) return 'again'
    if (/^(n|no)$/i.test(answer)) return 'keep'
    if (isPrivate && /^(a|allow)$/i.test(answer)) return 'allow'
  }
}

function sinkCollectors(options: readonly SinkOption[], { terminal }: Context): Collect[] {
  const counts = new Map<string, number>()
  const names = new Set<string>()
  return options.map(({ type, name: given, values }) => {
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    const name = given ?? (count === 1 ? type : `${type}-${count}`)
    if (names.has(name))
      throw new UsageError(`--sink: there are two of the name ${name}; name one: ${type},name=…`)
    names.add(name)
    const fields = sinkFields[type]
    const others = Object.entries(values).filter(([key]) => !fields.some((field) => field.key === key))
    return async (again) => {
      const suffix = count === 1 ? '' : `_${count}`
      const answers = await answersOf(name, fields, {
        ...originOf(values, again, (field) => ask(terminal, field, name)),
        suffix,
      })
      if ('missing' in answers) return answers
      const own: Entry[] = [
        { key: 'type', value: type },
        ...answers.part.entries,
        ...others.map(([key, value]) => ({ key, value })),
      ]
      return { part: { name, entries: own } }
    }
  })
}

async function sourceOf(
  wanted: InitOptions,
  again: boolean,
  terminal: Terminal | undefined,
): Promise<Answers> {
  const { baseUrl, tokenFile } = wanted
  const fields = tokenFile === undefined ? [baseUrlQuestion, tokenQuestion] : [baseUrlQuestion]
  const flags = baseUrl === undefined ? {} : { baseUrl }
  const answers = await answersOf(
    'main',
    fields,
    originOf(flags, again, (field) => ask(terminal, field, 'main')),
  )
  if ('missing' in answers) return answers
  const unitsPerDay = wanted.unitsPerDay ?? (await askUnits(terminal))
  const entries: Entry[] = [
    ...answers.part.entries,
    ...(tokenFile === undefined ? [] : [{ key: 'tokenFile', value: tokenFile }]),
    { key: 'budget', value: { unitsPerDay } },
  ]
  return { part: { name: 'main', entries } }
}

const unitsPerDayUsual = 2_000

/** An answer that is no number is returned as it was typed: the check of the config refuses it by that text. */
async function askUnits(terminal: Terminal | undefined): Promise<number | string> {
  const answer = await terminal?.ask(`Units that the bridge may spend a day [${unitsPerDayUsual}]`)
  if (!answer) return unitsPerDayUsual
  return Number.isNaN(Number(answer)) ? answer : Number(answer)
}

async function askSinks(terminal: Terminal): Promise<SinkOption[]> {
  for (;;) {
    const answer = await terminal.ask(`Receivers, of ${offeredTypes.join(', ')} [webhook]`)
    const types = (answer || 'webhook').split(/[\s,]+/)
    const offered = types.filter(isOffered)
    if (offered.length === types.length) return offered.map((type) => ({ type, values: {} }))
  }
}

async function answersOf(name: string, fields: readonly Field[], origin: Origin): Promise<Answers> {
  const entries: Entry[] = []
  const missing: string[] = []
  for (const field of fields) {
    const entry = await entryOf(field, origin)
    if (typeof entry === 'string') missing.push(entry)
    else entries.push(entry)
  }
  return missing.length > 0 ? { missing } : { part: { name, entries } }
}

/** Once an answer was refused, all of its part is asked for: what came from outside would be refused again. */
function originOf(flags: Origin['flags'], again: boolean, ask: Origin['ask']): Origin {
  return again ? { flags: {}, env: {}, ask } : { flags, env: process.env, ask }
}

function ask(terminal: Terminal | undefined, { question, secret }: Field, name: string) {
  return Promise.resolve(terminal?.ask(`${name}: ${question}`, { hidden: secret ?? false }))
}

/** Where nobody can be asked, everything that is missing is said at once, before anybody is called. */
async function refuseMissing(collectors: readonly Collect[]): Promise<void> {
  const missing: string[] = collectors.length > 1 ? [] : ['--sink TYPE']
  for (const collect of collectors) {
    const answers = await collect(false)
    if ('missing' in answers) missing.push(...answers.missing)
  }
  if (missing.length > 0)
    throw new UsageError(
      `Nobody can be asked here, and this is missing: ${missing.join(', ')}. Names in capitals are environment variables; init --help has examples.`,
    )
}

/** Stands for the sinks while there are none yet, and is never called. */
const placeholder: Part = {
  name: 'placeholder',
  entries: [
    { key: 'type', value: 'ntfy' },
    { key: 'topic', value: 'placeholder' },
  ],
}

/** The config as it would be written, checked as `check-config` checks it. Throws a UserError over its mistakes. */
export function configWith(source: Part, sinks: readonly Part[], file: string) {
  const fresh = freshVariables([source, ...sinks])
  const env = { ...process.env, ...fresh }
  const loaded = parseConfig(configText(source, sinks), { env, folder: dirname(resolve(file)) })
  if (loaded.ok) return loaded
  // There is no file yet, so a line in it would say nothing.
  const texts = loaded.mistakes.map(({ line: _, column: __, ...mistake }) => formatMistake(file, mistake))
  // Nor do those variables hold anything yet.
  const inWords = (text: string) =>
    Object.keys(fresh).reduce((all, name) => all.replaceAll(heldIn([name]), 'what was typed'), text)
  throw new UserError(inWords(texts.join('\n')))
}

import { UsageError } from '../arguments/usage.ts'
import { isOffered, type OfferedType, offeredTypes, sinkFields } from './fields.ts'

/** `--sink TYPE[,KEY=VALUE]…` */
export interface SinkOption {
  readonly type: OfferedType
  readonly name?: string
  readonly values: Readonly<Record<string, unknown>>
}

export function sinkOption(text: string, before: readonly SinkOption[] = []): readonly SinkOption[] {
  // A value may have commas: only one before a KEY= parts.
  const [type = '', ...pairs] = text.split(/,(?=[A-Za-z]+=)/)
  if (!isOffered(type))
    throw new UsageError(
      `--sink: "${type}" is none of ${offeredTypes.join(', ')}; others are written by hand.`,
    )
  const { name, ...values } = Object.fromEntries(pairs.map((pair) => toPair(type, pair)))
  return [...before, { type, ...(name === undefined ? {} : { name: String(name) }), values }]
}

function toPair(type: OfferedType, pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  const [key, value] = [pair.slice(0, at), pair.slice(at + 1)]
  const secret = sinkFields[type].find((field) => field.key === key && field.secret)
  // The value is not repeated: it is a secret.
  if (secret)
    throw new UsageError(
      `--sink: ${key} of ${type} is a secret; set ${secret.variable} instead of typing it here.`,
    )
  return [key, key === 'name' ? value : scalar(value)]
}

function scalar(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text
}

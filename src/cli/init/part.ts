import { maskAddress } from '../../config/mistakes/describe-value.ts'
import type { Field } from './fields.ts'

/** A value of the config: as it is used now, and as the file has it. */
export type Entry =
  | { readonly key: string; readonly value: unknown }
  /** The file names the variable; `value` is what it holds, or will hold. */
  | { readonly key: string; readonly value: string; readonly variable: string; readonly fresh: boolean }

/** A source or a sink under its name. */
export interface Part {
  readonly name: string
  readonly entries: readonly Entry[]
}

/** Where the value of a field comes from, in this order; `ask` returns undefined where nobody can be asked. */
export interface Origin {
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly ask: (field: Field) => Promise<string | undefined>
  /** Of several sinks of one type, the second one's variables end in `_2`. */
  readonly suffix?: string
}

/** The entry of a field, or what is missing, in words. */
export async function entryOf(field: Field, origin: Origin): Promise<Entry | string> {
  const { key, list } = field
  const variable = field.variable === undefined ? undefined : `${field.variable}${origin.suffix ?? ''}`
  if (Object.hasOwn(origin.flags, key)) {
    const given = origin.flags[key]
    // Others may read the config: an address with a login or a token in it goes where secrets go.
    return variable !== undefined && typeof given === 'string' && maskAddress(given) !== given
      ? { key, value: given, variable, fresh: true }
      : { key, value: listed(given, list) }
  }
  const found = variable === undefined ? undefined : origin.env[variable]
  if (variable !== undefined && found) return { key, value: found, variable, fresh: false }
  const answer = (await origin.ask(field)) || field.make?.()
  if (answer === undefined || answer === '') return variable ?? `${key}=…`
  return variable === undefined
    ? { key, value: listed(answer, list) }
    : { key, value: answer, variable, fresh: true }
}

function listed(value: unknown, list: true | undefined): unknown {
  return list && typeof value === 'string' ? value.split(',').map((each) => each.trim()) : value
}

/** Variables that are not set yet, with their values. */
export function freshVariables(parts: readonly Part[]): Record<string, string> {
  const fresh = parts
    .flatMap(({ entries }) => entries)
    .flatMap((entry) => ('variable' in entry && entry.fresh ? [[entry.variable, entry.value] as const] : []))
  return Object.fromEntries(fresh)
}

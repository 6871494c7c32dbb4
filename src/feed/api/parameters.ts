import { foundText } from '../../alert/text/value.ts'

/** What one query parameter of the API may be. The API's own bounds, where its document names some. */
export type Parameter =
  | { readonly kind: 'text' }
  | { readonly kind: 'choice'; readonly of: readonly string[] }
  | { readonly kind: 'whole'; readonly min: number; readonly max?: number }
  | { readonly kind: 'flag' }
  | { readonly kind: 'texts'; readonly itemsMax: number; readonly required?: true }

/** How a flag is written on the wire is not documented: `true` and `false`, or, for a caller that writes them, 1 and 0. */
export type ParameterValue<P extends Parameter> = P extends { kind: 'choice'; of: readonly (infer T)[] }
  ? T
  : P extends { kind: 'whole' }
    ? number
    : P extends { kind: 'flag' }
      ? boolean | 0 | 1
      : P extends { kind: 'texts' }
        ? readonly string[]
        : string

export const text = { kind: 'text' } as const
/** Pages count from 1; how many rows a page has cannot be chosen. */
export const page = { kind: 'whole', min: 1 } as const

/** Our own limit: a longer text is no name, and would not fit into an address once it is encoded. */
const textCharsMax = 500

/** Why `value` cannot be sent as this parameter, in words that follow its name; undefined when it can. */
export function parameterProblem(parameter: Parameter, value: unknown): string | undefined {
  const expected = (what: string) => `expected ${what}, found ${foundText(value)}`
  switch (parameter.kind) {
    case 'text':
      return textProblem(value)
    case 'choice':
      return parameter.of.some((each) => each === value)
        ? undefined
        : expected(`one of ${parameter.of.join(', ')}`)
    case 'whole': {
      const { min, max = Number.MAX_SAFE_INTEGER } = parameter
      const span = parameter.max === undefined ? `from ${min}` : `from ${min} to ${parameter.max}`
      return Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
        ? undefined
        : expected(`a whole number ${span}`)
    }
    case 'flag':
      return [true, false, 0, 1].some((each) => each === value) ? undefined : expected('true or false')
    case 'texts': {
      const { itemsMax } = parameter
      if (!Array.isArray(value) || value.length === 0) return expected(`1 to ${itemsMax} texts`)
      if (value.length > itemsMax) return `expected at most ${itemsMax} texts, found ${value.length}`
      return value.map(textProblem).find((each) => each !== undefined)
    }
    default:
      return parameter satisfies never
  }
}

/** Why `value` is no text that can be part of an address. */
export function textProblem(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return `expected a text, found ${foundText(value)}`
  if (value.length > textCharsMax) return `expected at most ${textCharsMax} characters, found ${value.length}`
  // Half of a character cannot be encoded; a control character is no part of any name.
  return !value.isWellFormed() || /\p{Cc}/u.test(value)
    ? 'expected a text without control characters and halves of characters'
    : undefined
}

/** `name=value` as an address has it; a list repeats its name. */
export function encodeQuery(name: string, value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(String(each))}`)
}

import { Secret } from '../lib/secret.ts'
import { type Env, soundsSecret } from './file/env.ts'
import type { Locations } from './file/locations.ts'
import { sortedMistakes } from './file/parse.ts'
import { type Mistake, mixesAll } from './mistakes/mistake.ts'

/**
 * Secrets at places that are none: in a template, as the name of a header or of a field, in a pattern. All that is shown of
 * a config passes here last: the values of variables whose names sound secret, and words that look random, are removed.
 */
export function conceal(text: string, hidden: readonly Secret[]): string {
  return without(text, byBeginning(hidden)).replace(/[\w+=]+/g, (word) =>
    looksRandom(word) ? redacted : word,
  )
}

/** The text is searched once, however many values there are; of those that overlap, all goes. */
function without(text: string, values: ReadonlyMap<string, readonly string[]>): string {
  let shown = ''
  let endOfLast = 0
  for (let at = 0; values.size > 0 && at + hiddenCharsMin <= text.length; at += 1) {
    const found = values.get(text.slice(at, at + hiddenCharsMin))?.find((value) => text.startsWith(value, at))
    if (found === undefined) continue
    if (at >= endOfLast) shown += text.slice(endOfLast, at) + redacted
    endOfLast = Math.max(endOfLast, at + found.length)
  }
  return shown + text.slice(endOfLast)
}

/** What is hidden, by its first characters, the longest first. */
function byBeginning(hidden: readonly Secret[]): ReadonlyMap<string, readonly string[]> {
  const known = beginnings.get(hidden)
  if (known !== undefined) return known
  const values = hidden.map((secret) => secret.reveal()).sort((a, b) => b.length - a.length)
  const made = Map.groupBy(values, (value) => value.slice(0, hiddenCharsMin))
  beginnings.set(hidden, made)
  return made
}

const beginnings = new WeakMap<readonly Secret[], ReadonlyMap<string, readonly string[]>>()

/** The answer to a config with mistakes: those that are reported, without secrets. */
export function refused(mistakes: readonly Mistake[], hidden: readonly Secret[] = []) {
  return {
    ok: false,
    mistakes: sortedMistakes(mistakes).map((each) => concealMistake(each, hidden)),
  } as const
}

export function concealMistake(mistake: Mistake, hidden: readonly Secret[]): Mistake {
  const { found, message, remedy } = mistake
  return {
    ...mistake,
    ...(found === undefined ? {} : { found: conceal(found, hidden) }),
    message: conceal(message, hidden),
    ...(remedy === undefined ? {} : { remedy: conceal(remedy, hidden) }),
  }
}

/** A text that nobody would choose as a name: probably a secret under the wrong key. */
export function looksRandom(text: string): boolean {
  return mixesAll(text, 16) || /^[\da-f]{32,}$/i.test(text)
}

/** What the variables hold that the config names and that sound secret. An address is none: only parts of it are. */
export function hiddenOf({ filled }: Pick<Locations, 'filled'>, env: Env): Secret[] {
  const names = new Set([...filled.values()].flatMap(({ variables }) => variables))
  return [...names].flatMap((name) => {
    const value = soundsSecret(name) && Object.hasOwn(env, name) ? (env[name] ?? '') : ''
    return value.length < hiddenCharsMin || value.includes('://') ? [] : [new Secret(value)]
  })
}

const redacted = '[redacted]'

/** A shorter one would remove parts of ordinary words. */
const hiddenCharsMin = 8

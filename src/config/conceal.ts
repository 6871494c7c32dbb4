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
  const without = hidden.reduce((shown, value) => shown.replaceAll(value.reveal(), redacted), text)
  return without.replace(/[\w+=]+/g, (word) => (looksRandom(word) ? redacted : word))
}

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

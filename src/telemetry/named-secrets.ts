import { secretCharsMin } from './scrub.ts'

/**
 * Of a text such as the template of a body, what it gives a name that sounds like that of a secret (`"password": "…"`, `userToken=…`,
 * `<key>…</key>`), as it is written there: a password may be a word like any other. Nothing that a value of an alert is part of.
 */
export function namedSecretsIn(text: string): readonly string[] {
  const found: string[] = []
  replaceNamed(text, (value) => {
    found.push(value)
    return value
  })
  return found
}

export function withoutNamedSecrets(text: string): string {
  return replaceNamed(text, () => '[redacted]')
}

function replaceNamed(text: string, replace: (value: string) => string): string {
  return text.replace(named, (whole: string, ...forms: (string | undefined)[]) => {
    const value = forms.slice(0, 5).find((form) => form !== undefined) ?? ''
    if (value.length < secretCharsMin) return whole
    const at = whole.lastIndexOf(value)
    return whole.slice(0, at) + replace(value) + whole.slice(at + value.length)
  })
}

/** A brace that begins no value of an alert: passwords that were generated have any sign in them. */
const brace = String.raw`\{(?![{%])`
/**
 * In double quotes, in single ones, in none, and between tags, where also CDATA may be. Bounded, since each name begins a search; longer words look like a
 * token anyway.
 */
const forms = [
  String.raw`[:=]\s*"((?:[^"\\{]|\\.|${brace}){1,200})"`,
  String.raw`[:=]\s*'((?:[^'\\{]|\\.|${brace}){1,200})'`,
  String.raw`[:=]\s*((?:[^\s"'<>&,;{}]|${brace}){1,64})(?=[\s"'<>&,;}]|$)`,
  String.raw`(?:\s[^<>]{1,200})?>\s{0,20}(?:<!\[CDATA\[((?:[^\]{]|\](?!\])|${brace}){1,200})\]\]|((?:[^<>{]|${brace}){1,200})(?=<))`,
]
const named = new RegExp(
  String.raw`(?:token|secret|pass(?:word|wd|phrase|code)?|ps?wd|psw|key|credentials?|auth(?:orization)?)["']?\s*(?:${forms.join('|')})`,
  'gis',
)

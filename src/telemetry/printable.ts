/**
 * What others wrote, for a terminal or a log: a row of the feed, a receiver's answer, a stored reason. Whatever could move
 * the cursor, end the line or turn the reading direction around is written out as JSON would (`\u001b`, `\n`), so that it
 * is visible and has no effect. All else stays as it is, also the joiners and marks that Persian needs.
 */
const unsafe = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** As one line. */
export function printable(text: string): string {
  return text.replace(unsafe, written)
}

/** A text of ours, or JSON, that may contain what others wrote: its line breaks stay. JSON stays the same JSON. */
export function printableLines(text: string): string {
  return text.replace(unsafe, (character) => (character === '\n' ? character : written(character)))
}

/** For a line of JSON that a program parses and then prints: an escaped character must still be escaped after parsing. */
export function printableOnceRead(json: string): string {
  return json.replace(unsafe, (character) => (character === '\n' ? character : `\\${written(character)}`))
}

function written(character: string): string {
  return shortForms[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

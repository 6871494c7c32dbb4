/**
 * What others wrote, for a terminal or a log: a row of the feed, a receiver's answer, a stored reason. Whatever could move
 * the cursor, end the line, turn the reading direction around or hide between letters (zero-width spaces, tag characters)
 * is written out as JSON would (`\u001b`, `\n`), so that it is visible and has no effect. All else stays as it is, also the
 * joiners and marks that Persian and emoji need.
 */
const unsafe = /[\p{Cc}\p{Cs}\u061c\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

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
  return json.replace(unsafe, (character) =>
    character === '\n' ? character : written(character).replaceAll('\\', '\\\\'),
  )
}

function written(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return shortForms[character] ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

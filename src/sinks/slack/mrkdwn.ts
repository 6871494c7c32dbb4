import { cut, type Direction, directionMark, isolate, oneLine } from '../../alert/text/text.ts'
import { joiner, withoutAutolinks } from '../autolinks.ts'

/**
 * Text of the API as Slack's markup. It cannot mention, link or format: the three control characters are escaped, marks
 * that could begin a format are replaced by characters that look alike, and a joiner separates colons that could begin
 * an emoji, and everything that Slack could turn into a link by itself.
 */
function mrkdwn(text: string): string {
  return withoutAutolinks(text)
    .replace(formatMark, (mark) => lookalikes[mark] ?? mark)
    .replace(joiningColon, `:${joiner}`)
    .replace(/[&<>]/g, (character) => entities[character] ?? character)
}

/** Text of the API as one line that reads in `direction`, at most `charsMax` units of markup. */
export function directed(text: string, charsMax: number, direction: Direction): string {
  return directionMark(direction) + fitted(oneLine(text), charsMax - 1)
}

/** The room that `directed` needs for all of a text. */
export function directedCharsMax(text: string): number {
  return longest(oneLine(text)).length + 1
}

/** Text of the API inside a line of direction `around`, which it cannot change. */
export function valueLine(text: string, charsMax: number, around: Direction): string {
  return directionMark(around) + isolate(fitted(oneLine(text), charsMax - 3))
}

/**
 * `url` is an address that `linkOf` accepted; only its `&` has to be escaped. Returns the label alone where the address is
 * too long.
 */
export function link(url: string, label: string): string {
  const address = url.replaceAll('&', '&amp;')
  return address.length <= addressCharsMax ? `<${address}|${label}>` : label
}

const addressCharsMax = 2_300
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** A colon that could begin the name of an emoji. The one of a time of day cannot: no emoji is named by two digits. */
const joiningColon = /:(?!\d\d:)(?=[a-z0-9_+'-]+:)/gi

/** Between two letters or digits an underscore opens nothing: USD_IRR stays what it is. */
const formatMark = /[*~`]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu
const lookalikes: Readonly<Record<string, string>> = { '*': '∗', _: 'ˍ', '~': '∼', '`': 'ˋ' }

function fitted(line: string, charsMax: number): string {
  return mrkdwn(cut(line, charsMax, longest))
}

/** The longest that `mrkdwn` can make each character, with any neighbours. */
function longest(text: string): string {
  return text.replace(/[&<>]/g, (character) => entities[character] ?? character).replace(/[:@.。．]/g, '$&$&')
}

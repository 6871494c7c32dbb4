import type { Command } from 'commander'
import { asciiDigits } from '../../alert/text/text.ts'
import { parseInstant } from '../../config/instant.ts'
import { parseDuration } from '../../lib/duration.ts'
import { UserError } from '../../lib/errors.ts'

/** A wrong command line: one sentence like every UserError, and exit code 2. */
export class UsageError extends UserError {}

/** Parsers of options and arguments. They run before a command, so a wrong command line reads and sends nothing. */

export function countOption(option: string, max = 999_999_999): (text: string) => number {
  return (text) => {
    if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= max) return Number(text)
    throw new UsageError(`${option}: "${text}" is no whole number from 1 to ${max}.`)
  }
}

/** Whoever gives an order a `--limit` means so many and no more; what is dropped beyond that does not come back. */
export function refuseLimit(command: Command, action: string): void {
  if (command.getOptionValueSource('limit') !== 'cli') return
  throw new UsageError(
    `--limit is how many to list: ${action} takes all that are selected, and --dry-run says how many.`,
  )
}

/** Checks for an ISO time with its offset, and returns the text unchanged. */
export function isoOption(option: string): (text: string) => string {
  return (text) => {
    if (parseInstant(text) !== undefined) return text
    throw new UsageError(`${option}: "${text}" is no time such as 2026-11-21T08:45:00+03:30.`)
  }
}

/** Checks for a span such as `2h`, and returns the text unchanged. */
export function spanOption(option: string): (text: string) => string {
  return (text) => {
    if ((parseDuration(text) ?? 0) > 0) return text
    throw new UsageError(`${option}: "${text}" is no span such as 2h.`)
  }
}

/** Also of an environment variable, which `place` names. */
export function urlOption(text: string, place?: unknown): string {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  // Requests with a login in their address are not sent; and a text that may contain one is not repeated.
  if (url && `${url.username}${url.password}${url.search}${url.hash}` === '') return text.replace(/\/+$/, '')
  const shown = /[@?#]/.test(text) ? 'this' : `"${text}"`
  const name = typeof place === 'string' && place !== '' ? place : '--url'
  throw new UsageError(
    `${name}: ${shown} is no http address such as http://127.0.0.1:8080, without a login and a query.`,
  )
}

/** `SOURCE.ID` in its parts. */
export function alertOf(text: string): { source: string; id: number } {
  const match = /^([a-z0-9-]+)\.(\d{1,16})$/.exec(asciiDigits(text))
  const id = Number(match?.[2])
  // A larger number would be rounded to its neighbour.
  if (match?.[1] && Number.isSafeInteger(id)) return { source: match[1], id }
  throw new UsageError(`"${text}" is no alert: expected SOURCE.ID, such as main.4711.`)
}

/** For arguments that may be given several times. */
export function idsArgument(form: RegExp, expected: string, isId = (_id: string) => true) {
  return (text: string, before: readonly string[] = []): readonly string[] => {
    const id = asciiDigits(text)
    if (form.test(id) && isId(id)) return [...before, id]
    throw new UsageError(`"${text}": expected ${expected}.`)
  }
}

export const alertIds = idsArgument(/^.{1,200}\.\d{1,16}$/, 'SOURCE.ID, such as main.4711', (id) =>
  Number.isSafeInteger(Number(id.slice(id.lastIndexOf('.') + 1))),
)

/** An address with the name that people see beside it. */
export interface Mailbox {
  readonly name: string
  readonly address: string
}

const addressCharsMax = 254
const mailboxCharsMax = 1_000
const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const domain = /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/

/**
 * Why `text` is not one bare address. Strict on purpose: mailers read commas, comments and line breaks in an address as
 * further recipients.
 */
export function addressProblem(text: string): string | undefined {
  const at = text.lastIndexOf('@')
  const fits = text.length <= addressCharsMax && at > 0 && at <= 64
  return fits && localPart.test(text.slice(0, at)) && domain.test(text.slice(at + 1))
    ? undefined
    : 'expected one address such as desk@example.com'
}

/** `name@example.com`, `Name <name@example.com>` or `"Name" <name@example.com>`; undefined when it is neither. */
export function parseMailbox(text: string): Mailbox | undefined {
  if (addressProblem(text) === undefined) return { name: '', address: text }
  if (text.length > mailboxCharsMax) return undefined
  const match = /^(?:"([^"\\<>\p{Cc}]*)"|([^"\\<>\p{Cc}]*?))\s*<([^<>\s]+)>$/u.exec(text)
  const address = match?.[3]
  if (!match || address === undefined || addressProblem(address) !== undefined) return undefined
  return { name: (match[1] ?? match[2] ?? '').trim(), address }
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

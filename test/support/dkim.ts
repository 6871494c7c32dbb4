import { createHash, createPublicKey, verify } from 'node:crypto'

/**
 * Checks the DKIM signature of a mail (RFC 6376) as a receiver would, for `relaxed/relaxed` and `rsa-sha256` alone.
 * Returns the tags of the signature; throws what is wrong with it.
 */
export function verifyDkim(raw: string, publicKeyPem: string): ReadonlyMap<string, string> {
  const [head = '', body = ''] = splitOnce(raw.replace(/\r?\n/g, '\r\n'), '\r\n\r\n')
  const fields = head.split(/\r\n(?![ \t])/)
  const field = fields.find((each) => /^dkim-signature:/i.test(each))
  if (field === undefined) throw new Error('the mail is not signed')
  const tags = tagsOf(splitOnce(field, ':')[1] ?? '')
  if (tags.get('c') !== 'relaxed/relaxed') throw new Error(`canonicalization ${tags.get('c')}`)
  if (tags.get('a') !== 'rsa-sha256') throw new Error(`algorithm ${tags.get('a')}`)
  const bodyHash = createHash('sha256').update(relaxedBody(body)).digest('base64')
  if (bodyHash !== tags.get('bh')) throw new Error('the body is not the one that was signed')
  const left = [...fields]
  const signed = (tags.get('h') ?? '').split(':').map((name) => {
    // Each name takes one field, from the bottom up; one that is not there stands for its absence.
    const at = left.findLastIndex((each) => nameOf(each) === name.toLowerCase())
    return at < 0 ? '' : `${relaxedField(left.splice(at, 1)[0] ?? '')}\r\n`
  })
  const own = relaxedField(field.replace(/([;:\s]b=)[^;]*/, '$1'))
  const signature = Buffer.from(tags.get('b') ?? '', 'base64')
  const text = Buffer.from(signed.join('') + own)
  if (!verify('sha256', text, createPublicKey(publicKeyPem), signature))
    throw new Error('the signature is wrong')
  return tags
}

function tagsOf(text: string): Map<string, string> {
  const pairs = text.split(';').filter((pair) => pair.trim() !== '')
  return new Map(
    pairs.map((pair) => {
      const [name = '', value = ''] = splitOnce(pair, '=')
      return [name.trim(), value.replace(/\s/g, '')]
    }),
  )
}

function relaxedBody(body: string): string {
  const lines = body.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').trimEnd())
  while (lines.at(-1) === '') lines.pop()
  return lines.length === 0 ? '' : `${lines.join('\r\n')}\r\n`
}

function relaxedField(field: string): string {
  const value = splitOnce(field, ':')[1] ?? ''
  return `${nameOf(field)}:${value
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .trim()}`
}

function nameOf(field: string): string {
  return (splitOnce(field, ':')[0] ?? '').trim().toLowerCase()
}

function splitOnce(text: string, at: string): [string, string?] {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + at.length)]
}

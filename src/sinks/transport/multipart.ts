import { createHash } from 'node:crypto'

/** A form with a file (multipart/form-data, RFC 7578). The same parts make the same bytes. Names are our own, never the API's. */
interface FormPart {
  readonly name: string
  readonly value: string | FormFile
}

interface FormFile {
  readonly fileName: string
  readonly contentType: string
  readonly content: Uint8Array
}

export function multipart(parts: readonly FormPart[]): { contentType: string; body: Buffer } {
  const hash = createHash('sha256')
  for (const { value } of parts) hash.update(typeof value === 'string' ? value : value.content)
  // The boundary is a hash of all parts: a sender cannot write a part that contains it.
  const boundary = `alert-bridge-${hash.digest('hex').slice(0, 32)}`
  const pieces = parts.flatMap(({ name, value }) => {
    const isText = typeof value === 'string'
    const file = isText ? '' : `; filename="${value.fileName}"\r\ncontent-type: ${value.contentType}`
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`
    return [Buffer.from(head), isText ? Buffer.from(value) : value.content, Buffer.from('\r\n')]
  })
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]),
  }
}

import type { IncomingMessage } from 'node:http'

const bodyBytesMax = 1_048_576

/** The JSON body of a call; undefined where it is no JSON, or too long. No body at all is an empty object. */
export async function readBody(request: IncomingMessage): Promise<{ readonly json: unknown } | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Read to its end, so that the answer can be sent on the same connection.
    if (bytes <= bodyBytesMax) chunks.push(chunk)
  }
  if (bytes > bodyBytesMax) return undefined
  try {
    return { json: JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}') }
  } catch {
    return undefined
  }
}

import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import type { Clock } from '../../lib/clock.ts'
import type { InjectedFault } from '../faults/faults.ts'
import type { Reply } from './answers.ts'

/** Sends a reply, whole or broken as a fault of the transfer stage says. Ends when the receiver has disconnected. */
export async function transmit(
  response: ServerResponse,
  reply: Reply,
  fault: InjectedFault | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const gzip = fault?.kind === 'gzip'
  const body = gzip ? gzipSync(reply.body) : Buffer.from(reply.body)
  const headers = { ...reply.headers, ...(gzip ? { 'content-encoding': 'gzip' } : {}) }
  if (fault?.kind === 'hang') {
    // Nothing follows: the receiver's own limit, or the sandbox's stop, ends it.
    if (fault.headersSent)
      response.writeHead(reply.status, { ...headers, 'content-length': body.length }).flushHeaders()
    return
  }
  if (reply.blanks) {
    response.writeHead(reply.status, headers)
    return pipeline(Readable.from(blanks(reply.blanks)), response)
  }
  response.writeHead(reply.status, { ...headers, 'content-length': body.length })
  if (fault?.kind === 'cut') {
    response.write(body.subarray(0, fault.bytes ?? Math.floor(body.length / 2)), () => response.destroy())
    return
  }
  if (fault?.kind === 'drip') {
    const step = fault.bytes ?? 1
    for (let sent = 0; sent < body.length && !response.destroyed; sent += step) {
      response.write(body.subarray(sent, sent + step))
      await clock.sleep(fault.intervalMs, signal)
    }
  } else response.write(body)
  response.end()
}

/** JSON may begin with spaces, so a reader has to refuse such a body for its length. A gzip file may be many members in a row. */
function* blanks({ bytes, gzip }: { bytes: number; gzip: boolean }): Generator<Buffer> {
  const plain = Buffer.alloc(1_048_576, ' ')
  const whole = gzip ? gzipSync(plain) : plain
  for (let left = bytes; left > 0; left -= plain.length) {
    const rest = plain.subarray(0, left)
    yield left >= plain.length ? whole : gzip ? gzipSync(rest) : rest
  }
}

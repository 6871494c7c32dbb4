import { load } from '../../lib/packages.ts'

/**
 * nodemailer limits the length of a reply, and not how many wait: it keeps each empty line that a server sends, and takes one
 * a turn of the event loop off the front of their list, whoever has left meanwhile. A server that sends empty lines without an
 * end would so take the whole process, its memory, and all other sinks with it.
 */
export function limitReplies(): void {
  const { prototype } = load('nodemailer/lib/smtp-connection') as { readonly prototype: Session }
  const read = prototype._onData
  if (limited.has(read)) return
  prototype._onData = function (this: Session, chunk) {
    read.call(this, chunk)
    if (this._responseQueue.length > repliesMax) this._onResponseTooLarge()
  }
  limited.add(prototype._onData)
}

/** What this needs of its connections has no public name: the tests of a server that floods show that it is still there. */
interface Session {
  readonly _responseQueue: readonly string[]
  _onData(chunk: Buffer): void
  /** Forgets what waits, and ends the connection with an error. */
  _onResponseTooLarge(): void
}

const limited = new WeakSet<Session['_onData']>()

/** A mail has fewer commands than ten. */
const repliesMax = 100

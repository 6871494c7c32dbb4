import { errorCode, toError } from '../../lib/errors.ts'
import type { Fault } from '../outcome.ts'

/** A fault that a sink found itself, with a sentence that may be shown. */
export class SinkError extends Error {
  override readonly name = 'SinkError'
  readonly fault: Fault

  constructor(fault: Fault, message: string) {
    super(message)
    this.fault = fault
  }
}

export interface ClassifiedFault {
  readonly fault: Fault
  readonly text: string
}

/**
 * The fault that an error of Node, undici or nodemailer means. The innermost known error decides: the outer ones
 * (`fetch failed`, `ESOCKET`, an AggregateError over addresses) only wrap it.
 */
export function classifyFault(thrown: unknown): ClassifiedFault {
  const chain = chainOf(thrown)
  for (const error of chain) {
    if (error instanceof SinkError) return { fault: error.fault, text: error.message }
  }
  for (const error of chain.toReversed()) {
    const { name, message } = toError(error)
    // The parser's errors sometimes have no code.
    const fault = name === 'HTTPParserError' ? 'bad_answer' : ofCode(codeOf(error), message)
    if (fault !== undefined) return { fault, text: message }
  }
  return { fault: 'connection_lost', text: toError(thrown).message }
}

const faultOfCode: ReadonlyMap<string, Fault> = new Map<string, Fault>([
  ['ENOTFOUND', 'dns'],
  ['ENODATA', 'dns'],
  ['EDNS', 'dns'],
  ['ECONNREFUSED', 'connect'],
  ['EHOSTUNREACH', 'connect'],
  ['EHOSTDOWN', 'connect'],
  ['ENETUNREACH', 'connect'],
  ['ENETDOWN', 'connect'],
  ['EADDRNOTAVAIL', 'connect'],
  ['EACCES', 'connect'],
  ['EPERM', 'connect'],
  ['EMFILE', 'connect'],
  ['UND_ERR_ABORTED', 'connect'], // a proxy that refused the tunnel; our own aborts never come here
  ['UND_ERR_PRX_TLS', 'tls'],
  ['UND_ERR_PRX_CONN', 'connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
  ['UND_ERR_BODY_TIMEOUT', 'timeout'],
  ['ETIMEDOUT', 'timeout'],
  ['ETLS', 'tls'],
  ['EREQUIRETLS', 'tls'],
  ['EPROTO', 'tls'],
  ['ECONNRESET', 'connection_lost'],
  ['ECONNABORTED', 'connection_lost'],
  ['EPIPE', 'connection_lost'],
  ['UND_ERR_SOCKET', 'connection_lost'],
  ['UND_ERR_CLOSED', 'connection_lost'],
  ['UND_ERR_DESTROYED', 'connection_lost'],
  ['ECONNECTION', 'connection_lost'],
  ['ESOCKET', 'connection_lost'],
  ['EPROTOCOL', 'bad_answer'],
  ['UND_ERR_HEADERS_OVERFLOW', 'bad_answer'],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'bad_answer'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'bad_answer'],
  ['UND_ERR_INVALID_ARG', 'unrenderable'],
  ['ERR_INVALID_CHAR', 'unrenderable'],
])

function ofCode(code: string | undefined, message: string): Fault | undefined {
  if (code === undefined) return undefined
  // The handshake was broken off: Node calls that a reset, but for an operator it is about TLS (often a plain-text port).
  if (code === 'ECONNRESET' && message.includes('before secure TLS connection')) return 'tls'
  const known = faultOfCode.get(code)
  if (known !== undefined) return known
  if (code.startsWith('EAI_')) return 'dns'
  if (code.startsWith('HPE_')) return 'bad_answer'
  if (/^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_)/.test(code))
    return 'tls'
  return undefined
}

/** From the outermost error inwards. Of an aggregate of failed addresses, the last error is used. */
function chainOf(thrown: unknown): unknown[] {
  const chain: unknown[] = []
  let next = thrown
  while (next !== undefined && next !== null && chain.length < chainMax) {
    chain.push(next)
    next = next instanceof AggregateError && next.errors.length > 0 ? next.errors.at(-1) : causeOf(next)
  }
  return chain
}

const chainMax = 8

function causeOf(thrown: unknown): unknown {
  return thrown instanceof Error ? thrown.cause : undefined
}

/** nodemailer puts its own code over the system's, which it keeps as `originalCode`. */
function codeOf(thrown: unknown): string | undefined {
  const original = thrown instanceof Error && 'originalCode' in thrown ? thrown.originalCode : undefined
  return typeof original === 'string' ? original : errorCode(thrown)
}

/** A mistake that the operator can correct: one sentence, printed without a stack, exit code 1. */
export class UserError extends Error {
  override readonly name = 'UserError'
}

/** The operator named something that does not exist: one sentence that says so, and no fault of the bridge. */
export class NotFoundError extends UserError {}

/** What the operator sent cannot be what was meant, whatever the state of the bridge. */
export class MalformedError extends UserError {}

/** Whatever was thrown, as an Error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** The stable `code` that Node, undici, ioredis and nodemailer put on their errors. */
export function errorCode(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return undefined
  return typeof thrown.code === 'string' ? thrown.code : undefined
}

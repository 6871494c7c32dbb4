import { toError } from '../../lib/errors.ts'
import { TimeLimitError } from '../../lib/time-limit.ts'

/**
 * What Redis refused. Before version 7 it wraps what it refuses within a script in the place in that script:
 * `ERR Error running script (call to f_…): @user_script:4: @user_script: 4: -READONLY …`.
 */
export function replyText(message: string): string {
  return message.replace(scriptPlace, '').trimEnd()
}

const scriptPlace = /^(ERR Error running script \(call to \w+\): @user_script:\d+: )?(@user_script: \d+: )-?/

export const notConnectedText = 'not connected'

/** What a person may read of an error from Redis: never the arguments of a command (a password, a job). */
export function redisErrorText(thrown: unknown): string {
  const cause = causeOf(thrown)
  if (notConnected.test(cause.message)) return notConnectedText
  if (noAnswer.test(cause.message)) return 'no answer in time'
  const [text] = replyText(sentinelText(cause.message) ?? cause.message).split(/, with args beginning with/i)
  return text?.slice(0, 200) || cause.name
}

/** Whether Redis itself said it. */
export function isReply(thrown: unknown): boolean {
  return causeOf(thrown).name === 'ReplyError'
}

/** Of a cluster what its last node said. */
function causeOf(thrown: unknown): Error {
  const error = toError(thrown)
  return 'lastNodeError' in error ? toError(error.lastNodeError) : error
}

/**
 * The driver calls all sentinels unreachable also where each has answered: that it knows no such master, that it asks for a login, or
 * with a master that is not there.
 */
function sentinelText(message: string): string | undefined {
  const [all, said] = /^All sentinels are unreachable(?:.* Last error: (.*))?/s.exec(message) ?? []
  if (all === undefined) return undefined
  if (said === undefined) return 'the sentinels name no master that can be reached'
  const isSilent = notConnected.test(said) || noAnswer.test(said)
  return isSilent ? 'no sentinel answers' : `no sentinel names the master: ${said}`
}

/** What the driver says of its own connection, in words of its options. */
const notConnected = /^(Stream isn't|Cluster isn't ready|Connection is |Command aborted|Reached the max)/
const noAnswer = /^(Command timed out|Socket timeout)/

/** Whether this is Redis being away or refusing to write, as opposed to a mistake in what it was asked. */
export function isRedisAway(thrown: unknown): boolean {
  const error = toError(thrown)
  const code = 'code' in error ? String(error.code) : ''
  const text = replyText(error.message)
  return (
    /^(ECONN|EPIPE|ENOENT|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENETUNREACH)/.test(code) ||
    /^(MaxRetriesPerRequestError|ClusterAllFailedError)$/.test(error.name) ||
    /^(READONLY|LOADING|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|OOM|MISCONF|BUSY|TRYAGAIN|NOAUTH|WRONGPASS)\b/.test(
      text,
    ) ||
    /Command (timed out|aborted)|Connection is closed|Stream isn't writeable|Socket timeout|Cluster isn't ready|Too many Cluster redirections|None of startup nodes|All sentinels are unreachable/.test(
      text,
    )
  )
}

/** Whether no answer came to what may have been sent: Redis carries it out all the same where it only was slow, or lost the connection. */
export function isUnheard(thrown: unknown): boolean {
  const text = toError(thrown).message
  const isUnsent = /^(Stream isn't|Cluster isn't ready)/.test(text)
  return thrown instanceof TimeLimitError || (!isUnsent && (noAnswer.test(text) || notConnected.test(text)))
}

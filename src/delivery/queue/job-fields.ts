import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { type AttemptRecord, parseAttemptRecord } from './attempt-record.ts'
import type { AlertQueue } from './queues.ts'

/**
 * What is stored with a job beside BullMQ's own fields, for the process that takes the job next: until when the alert's
 * own schedule lets it wait, and that its sink has acknowledged it. Both are fields of the job's hash and are deleted
 * with it. Times are by Redis' clock, since the clocks of replicas differ. A field is valid for one delivery: one that an
 * operator asked for (`requestedAtMs`) begins without them, as does a job that an older version stored.
 */
export interface JobFields {
  read(job: JobDelivery): Promise<OwnFields>
  /** From now on the alert is due by its own schedule after `delayMs`. */
  delay(job: JobDelivery, delayMs: number): Promise<void>
  /** The alert's own schedule lets it wait for no longer than this, from when it was delayed. */
  shorten(job: JobDelivery, delayMsMax: number): Promise<void>
  acknowledge(job: JobDelivery, record: AttemptRecord): Promise<void>
  /** Why an attempt failed that does not count, in the field in which BullMQ has it of one that does. */
  failed(id: string, reason: string): Promise<void>
  /**
   * How often the job had stalled, by BullMQ's count, when a process that took it over last waited for the process before; 0: none
   * has waited.
   */
  waitedAtStall(id: string): Promise<number>
  waited(id: string, stall: number): Promise<void>
}

export interface JobDelivery {
  readonly id: string
  readonly requestedAtMs?: number | undefined
}

export interface OwnFields {
  /** How much earlier than by the alert's own schedule this is; 0 for an alert that is due. */
  readonly earlyMs: number
  readonly acknowledged?: AttemptRecord
}

export const noFields: OwnFields = { earlyMs: 0 }

/** Fields of the job's hash. BullMQ leaves those alone that it does not know. */
export const delayField = 'bridge:put-off'
const acknowledgedField = 'bridge:acknowledged'
export const waitedField = 'bridge:waited'

export function createJobFields(redis: RedisClient, queue: AlertQueue): JobFields {
  const run = (script: string, job: JobDelivery, ...given: (string | number)[]) =>
    within(
      commandTimeoutMs,
      'the fields of a job',
      redis.eval(script, 1, queue.toKey(job.id), deliveryOf(job), ...given),
    )
  return {
    async read(job) {
      const answer = await run(readScript, job)
      const [earlyMs, text] = Array.isArray(answer) ? answer : []
      const acknowledged = text ? parseAttemptRecord(String(text)) : undefined
      return { earlyMs: Number(earlyMs) || 0, ...(acknowledged ? { acknowledged } : {}) }
    },
    async delay(job, delayMs) {
      await run(delayScript, job, delayField, Math.ceil(delayMs))
    },
    async shorten(job, delayMsMax) {
      await run(shortenScript, job, delayField, Math.ceil(delayMsMax))
    },
    async acknowledge(job, record) {
      await run(storeScript, job, acknowledgedField, JSON.stringify(record))
    },
    async failed(id, reason) {
      await run(failedScript, { id }, reason)
    },
    async waitedAtStall(id) {
      const reading = redis.hget(queue.toKey(id), waitedField)
      return Number((await within(commandTimeoutMs, 'the fields of a job', reading))?.trim() ?? 0)
    },
    async waited(id, stall) {
      await run(storeScript, { id }, waitedField, stall)
    },
  }
}

/** Which of the deliveries of one alert to one target: the first, or the one that was asked for at this time. */
function deliveryOf({ requestedAtMs }: Pick<JobDelivery, 'requestedAtMs'>): string {
  return String(requestedAtMs ?? '')
}

/** Whether the field of a job is of its present delivery, and not of one before an operator asked for it again. */
export function isOfDelivery(
  field: string | null | undefined,
  { requestedAtMs }: Pick<JobDelivery, 'requestedAtMs'>,
): boolean {
  return field?.startsWith(`${deliveryOf({ requestedAtMs })} `) ?? false
}

const nowLine = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * KEYS job · ARGV delivery
 * Returns {how much earlier than due (ms), the acknowledgement or ''}. Where Redis' clock was set back, the whole pause
 * begins anew.
 */
const readScript = `${nowLine}
local fields = redis.call('HMGET', KEYS[1], '${delayField}', '${acknowledgedField}')
local earlyMs = 0
if fields[1] then
  local delivery, atMs, delayMs = string.match(fields[1], '^(%d*) (%d+) (%d+)$')
  if delivery == ARGV[1] then
    if tonumber(atMs) > nowMs then
      atMs = nowMs
      redis.call('HSET', KEYS[1], '${delayField}', delivery .. ' ' .. string.format('%d', nowMs) .. ' ' .. delayMs)
    end
    earlyMs = math.max(0, atMs + delayMs - nowMs)
  end
end
local delivery, acknowledgement = string.match(fields[2] or '', '^(%d*) (.+)$')
return {earlyMs, delivery == ARGV[1] and acknowledgement or ''}
`

/** KEYS job · ARGV delivery, field, pause (ms). A job that is gone is not made again. */
const delayScript = `${nowLine}
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[1] .. ' ' .. string.format('%d', nowMs) .. ' ' .. ARGV[3])
end
`

/** KEYS job · ARGV delivery, field, longest pause (ms) */
const shortenScript = `
local delivery, atMs, delayMs = string.match(redis.call('HGET', KEYS[1], ARGV[2]) or '', '^(%d*) (%d+) (%d+)$')
if delivery == ARGV[1] and tonumber(delayMs) > tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], ARGV[2], delivery .. ' ' .. atMs .. ' ' .. ARGV[3])
end
`

/** KEYS job · ARGV delivery, field, value. A job that is gone is not made again. */
const storeScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[2], ARGV[1] .. ' ' .. ARGV[3]) end
`

/** KEYS job · ARGV delivery, reason. A job that is gone is not made again. */
const failedScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'failedReason', ARGV[2]) end
`

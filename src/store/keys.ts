/**
 * Every key that this program writes to Redis (those of context are in `context-keys.ts`, those of what operators do in
 * `operator-keys.ts`): its type, when it expires, and what happens when it is lost.
 *
 * All of them have one hash tag, `{<prefix>}`, and so do the queues: in a cluster they share a slot, so that scripts and MULTI may
 * touch several, and a failover that loses its tail rewinds marks and jobs together, so that it loses no alert. No other key is written.
 */

/** What the walk, the ledger and the poller store of one source. */
interface SourceKeys {
  /**
   * HASH, key of the row → the day (UTC, since 1970) on which the feed last showed it. Days that ended 30 days (`seenWindow`) before the
   * last complete walk are forgotten, but for the newest 20,000 rows: these count as not there at once, and are removed later. Lost:
   * `startFrom` decides as on a first start; the rows are enqueued again, and sent again unless their job record is still kept.
   */
  readonly seen: string
  /** HASH, day → how many rows of `seen` have it. Lost alone: these are forgotten with the next later day. */
  readonly seenDays: string
  /**
   * ZSET, key of the row → number of its stretch (0: none): the seen rows below which something may still be unknown. A row is removed
   * when it is covered, or with its entry in `seen`. Lost alone: rows below may be missed until a sweep.
   */
  readonly uncovered: string
  /**
   * STRING, JSON of the open stretches: number, frontier and place of each; absent when none is open. No expiry, a few
   * entries. Lost: their rows stay uncovered, the next walk reads them again.
   */
  readonly stretch: string
  /**
   * HASH, key of a row that could not be read → JSON of it with the reason. No expiry; bounded in number and bytes: the oldest entry
   * is removed. Lost: people cannot see or retry these rows.
   */
  readonly quarantined: string
  /**
   * ZSET, key of a row that could not be read → when it was quarantined (ms, by Redis' clock); negative once its entry in `quarantined`
   * was removed. A row is removed when it could be read after all, when an operator dropped it, or, if negative, with its entry in
   * `seen`. Lost alone: such a row is not read again when the feed shows it.
   */
  readonly quarantinedTimes: string
  /** LIST, where earlier versions stored `quarantined`; the next poll moves its entries and removes it. */
  readonly quarantine: string
  /**
   * HASH of the walk's state: a random id, which rows count, the last complete walk, counts for the status page. No expiry.
   * Lost while a process runs: the process reports that Redis lost its data, and walks the feed again.
   */
  readonly meta: string
  /** HASH, half hour → rows that were new then, without history; of three days. Lost: the page shows fewer alerts of these hours. */
  readonly seenByHalfHour: string
  /** HASH, depth and time of the sweep. No expiry. Lost: the sweep begins at the top again. */
  readonly sweep: string
  /** Where the units of one budget day are counted; `dayKey` is its `YYYY-MM-DD`. */
  units(dayKey: string): string
  /**
   * ZSET, one member a request, scored by Redis' own clock in ms: the sliding minute over all replicas. Expires a
   * minute after the last request. Lost: at most one minute's requests too many, which the API answers with 429.
   */
  readonly minute: string
  /** HASH `{limit, untilMs, forMs}`: the API answered 429; no replica calls it before `untilMs`. Expires then. Lost: one more 429. */
  readonly hold: string
  /** STRING, JSON of the schedule's snapshot (what it learned). No expiry. Lost: the schedule learns again from `activeHours`. */
  readonly profile: string
  /** STRING, JSON of the budget that the API's refusals showed. No expiry. Lost: the next refusal shows it again. */
  readonly grant: string
  /**
   * HASH `{resetsAtMs, sinceMs, startMs, used, for:PURPOSE…}`: the API's own budget day, as its refusals showed it, where it differs
   * from the configured one, and its units. No expiry. Lost: the next refusal shows it again.
   */
  readonly apiDay: string
  /** STRING, JSON of the poller's last status, for every replica's status page. Expires after 7 days. Lost: unknown until the next poll. */
  readonly status: string
  /**
   * HASH, id of the alert → JSON of the routes that withheld it, and why (muted, silenced, throttled, or no route at all),
   * with its row. Kept as long as records of deliveries (`retention`). Lost: the alert cannot be replayed from it.
   */
  readonly held: string
  /** ZSET, id of the alert → when it was withheld (ms), by which `held` is trimmed. */
  readonly heldTimes: string
  /** STRING, JSON of the account's rules: what routes match on, and whether one may fire. Expires after a day. Lost: read again. */
  readonly rules: string
  /** STRING, JSON of the silent rules that people were notified of, at most 1,000. No expiry. Lost: they are notified again. */
  readonly reportedRules: string
  /**
   * STRING, the account in whose ledger this source last counted; absent: in its own. No expiry. Lost: where the config then
   * names another account, the day's units are granted once more.
   */
  readonly spendsIn: string
  /**
   * HASH, kind → how many alerts had it, at most 200 kinds; with that many, nothing more is counted. No expiry. Lost: they are
   * counted again; until then no route is reported to name a kind that does not exist.
   */
  readonly kinds: string
  /** STRING, until when (ms) an operator asked for more polls. Expires at that instant. Lost: the operator asks again. */
  readonly override: string
}

/** What is counted by account: see `SourceKeys`. */
export type SpendingKeys = Pick<SourceKeys, 'units' | 'minute' | 'hold' | 'grant' | 'apiDay'>

/** The same for sources that name an account, which share them: types and lifetimes are those of `SourceKeys`. */
export function accountKeys(prefix: string, account: string): SpendingKeys {
  const root = `${hashTag(prefix)}:account:${account}`
  return {
    units: (dayKey) => unitsKey(root, dayKey),
    minute: `${root}:minute`,
    hold: `${root}:hold`,
    grant: `${root}:truth`,
    apiDay: `${root}:told-day`,
  }
}

export function sourceKeys(prefix: string, source: string): SourceKeys {
  const root = `${hashTag(prefix)}:source:${source}`
  return {
    seen: `${root}:seen`,
    seenDays: `${root}:seen-days`,
    uncovered: `${root}:uncovered`,
    stretch: `${root}:stretch`,
    quarantined: `${root}:set-aside`,
    quarantinedTimes: `${root}:set-aside-times`,
    quarantine: `${root}:quarantine`,
    meta: `${root}:meta`,
    seenByHalfHour: `${root}:seen-by-half-hour`,
    sweep: `${root}:sweep`,
    units: (dayKey) => unitsKey(root, dayKey),
    minute: `${root}:minute`,
    hold: `${root}:hold`,
    profile: `${root}:profile`,
    grant: `${root}:truth`,
    apiDay: `${root}:told-day`,
    status: `${root}:status`,
    held: `${root}:held`,
    heldTimes: `${root}:held-times`,
    rules: `${root}:rules`,
    reportedRules: `${root}:reported-rules`,
    spendsIn: `${root}:spends-in`,
    kinds: `${root}:kinds`,
    override: `${root}:override`,
  }
}

/**
 * STRING, when (ms) people were first and last notified of one trouble (`breaker:SINK`, `dead:SINK`, `source:NAME`, `failing:NAME`,
 * `rows:NAME`, `orphan-sink:NAME`, `orphan-source:NAME`). Removed when the trouble is over (`dead` and `rows` have no end); expires
 * 30 days after the last notice. Lost: people are notified again, and not notified when it is over.
 */
export function noticeKey(prefix: string, trouble: string): string {
  return `${hashTag(prefix)}:notice:${trouble}`
}

/**
 * STRING, up to where people were notified: of a sink's dead letters up to a time (ms), `SINK`; of a source's quarantine up to a
 * number of rows, `rows:NAME`. No expiry. Lost: people are notified again of the last hour's dead letters, or of the rows quarantined.
 */
export function noticedKey(prefix: string, what: string): string {
  return `${hashTag(prefix)}:noticed-dead:${what}`
}

/**
 * HASH, id → JSON of a notice that is not in the queues of all its receivers yet. Removed when it is; expires 12 hours after the last
 * was added. Lost: these notices are not sent.
 */
export function noticesKey(prefix: string): string {
  return `${hashTag(prefix)}:notices`
}

/**
 * STRING, JSON: since when a sink is down, and why; written by the processes that send to it. Removed when it answers; expires
 * `breakerKeptMs` after a process last confirmed it. Lost: a process that starts in an outage has to try the sink itself.
 */
export function breakerKey(prefix: string, sink: string): string {
  return `${hashTag(prefix)}:breaker:${sink}`
}

/**
 * HASH `{receiver, retry, held, clock, plan:<plan>: n …}`: whose config and clock delayed the alerts of a sink. `receiver`: the
 * fingerprint of the receiver of the lane that started last; `retry`: its schedule; `held`: of the receiver that asked for the
 * current hold; `clock`: the clock (ms) of the process that last looked through them; `plan`: digest of a plan for whose marks
 * alerts wait → how many ever did. Expires `delayOriginsKeptMs` after its last change. Lost: the next lane looks through all of them.
 */
export function delayOriginsKey(prefix: string, sink: string): string {
  return `${hashTag(prefix)}:put-off:${sink}`
}

/** Longer than any alert is delayed. */
export const delayOriginsKeptMs = 31 * 24 * 60 * 60 * 1_000

/** When no process has sent to the sink for longer, a process that starts tries the sink itself. */
export const breakerKeptMs = 7 * 24 * 60 * 60 * 1_000

/**
 * STRING, the token of the replica that polls this source; it begins with host and process. Expires when it is not renewed (by Redis'
 * clock). Lost: another replica takes it; two may poll for a moment, which costs units, never an alert.
 */
export function leaseKey(prefix: string, source: string): string {
  return `${hashTag(prefix)}:lease:${source}`
}

/**
 * HASH `{untilMs, pending}`: until when, by Redis' clock, one throttle of one route lets no alert pass, and how many it has held back
 * since the last one passed. Expires `throttleKeptMs` after that end at the earliest. Lost: the next alert passes.
 */
export function throttleKey(prefix: string, name: string): string {
  return `${hashTag(prefix)}:throttle:${name}`
}

/**
 * STRING, what a throttle has decided of one alert, so that it is decided in the same way when its page is read again. Expires
 * `throttleKeptMs` after it was decided; of an alert that passed, after the end of its window. Lost: the alert is decided again.
 */
export function throttledKey(prefix: string, name: string, alert: string): string {
  return `${hashTag(prefix)}:throttle:${name}:${alert}`
}

/** How long a page may be read again, and how long a count waits for the next alert that passes. */
export const throttleKeptMs = 24 * 60 * 60 * 1_000

/**
 * SET, the names of all sinks that ever had an alert in their queue; a name is added before its first alert. It is removed when it is
 * in no config and its queue is empty. Lost: the names are searched in the queues' keys only once (`namesFound`); alerts of a sink
 * that left the config before stay in their queue.
 */
export function sinkNamesKey(prefix: string): string {
  return `${hashTag(prefix)}:names:sinks`
}

/**
 * HASH, the names of all sources that ever polled → JSON `{mark, dropped}`, `mark`: a hash of its address and token, by which its
 * account is recognised under another name. A name is removed when its data is carried over; that of a dropped source is kept, so
 * that the units it spent on that day count. Lost: as with `sinkNamesKey`.
 */
export function sourceNamesKey(prefix: string): string {
  return `${hashTag(prefix)}:names:sources`
}

/**
 * ZSET, `SINK PROCESS` → when (ms, by Redis' clock) this process last wrote that it has the sink in its config; and `=JSON PROCESS`:
 * its name, role and the hash of its config. Removed after 20 seconds. Lost: for 5 seconds, alerts of a sink that only another
 * replica has count as orphans, and other processes are not shown.
 */
export function servedSinksKey(prefix: string): string {
  return `${hashTag(prefix)}:names:served`
}

/** STRING, when (ms) the keys were searched for names that an earlier version did not store. Lost: they are searched again. */
export function namesFoundKey(prefix: string): string {
  return `${hashTag(prefix)}:names:found`
}

/** Any type, expires within a second: the check at the start tries its commands on it. */
export function probeKey(prefix: string): string {
  return `${hashTag(prefix)}:probe`
}

/**
 * The `prefix` option of every BullMQ queue and worker; BullMQ owns the keys beneath, but for two fields of a job's hash
 * (`delivery/queue/job-fields.ts`) and the names below. Lost: its jobs, with their rows' entries in `seen`: they come again.
 */
export function queuePrefix(prefix: string): string {
  return `${hashTag(prefix)}:queue`
}

/**
 * ZSET beside a queue, id of a job that an operator dropped → when (s), the newest 100,000. Expires 90 days after the last; until then
 * the name of the sink is kept. Lost: `why` does not say so, and a comparison of configs takes it for one that never went there.
 */
export const droppedName = 'dropped'

/** SET beside a queue, tags of all targets its alerts ever had. Removed with the sink's name. Lost: an id finds none of a target that left. */
export const targetTagsName = 'targets'

/** STRING beside a queue: a script of it was refused, and jobs may be in no list. Expires after a day. Lost: they stay there. */
export const refusedName = 'refused'

/**
 * HASH, key of one ledger's units on a budget day → key under which they are counted on that day, because a source has counted in
 * both ledgers. Expires `unitsKeptMs` after its last change. Lost: they are counted apart, and may grant more than a day's units.
 */
export function joinedUnitsKey(prefix: string, dayKey: string): string {
  return `${hashTag(prefix)}:joined-units:${dayKey}`
}

/** How long the count of a budget day is kept: far beyond its end, whatever the length of the day and the clocks. */
export const unitsKeptMs = 3 * 24 * 60 * 60 * 1_000

/**
 * HASH `{used, <purpose>: units …, half:<half hour>: units …}` (and from earlier versions `from:…`). Expires `unitsKeptMs` after
 * its last change. Lost: the bridge may spend the day's units again, until the API answers 429, which sets `hold`.
 */
function unitsKey(root: string, dayKey: string): string {
  return `${root}:units:${dayKey}`
}

/** STRING, the latest format that any version stored here. No expiry. Lost: a version that is too old is not noticed. */
export function stateFormatKey(prefix: string): string {
  return `${hashTag(prefix)}:format`
}

export function hashTag(prefix: string): string {
  return `{${prefix}}`
}

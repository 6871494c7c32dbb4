/**
 * Every key this program keeps in Redis: its type, how long it lives, and what happens when it is lost.
 *
 * All of them carry one hash tag, `{<prefix>}`, and so do the queues: in a cluster they share a slot, so that scripts
 * and MULTI may touch several, and a failover that loses its tail rewinds queues and state together. (State that
 * remembers an alert as seen, beside a queue that forgot its job, would be a lost alert.) Nothing else may be
 * written: a key that is not named here does not exist.
 */

/** What the walk, the ledger and the poller keep about one source. */
export interface SourceKeys {
  /**
   * ZSET, key of the row → when it was last shown, by the later of the clocks of Redis and of the bridge, exact to a day (ms). Trimmed by score, 30 days
   * (`seenWindow`) and a day before the last complete walk, but for the newest 20,000 rows: of what the first page shows,
   * nothing is forgotten, however old, nor anything while a walk is not done.
   * Lost: `startFrom` decides as on a first start; rows that are handed over again meet the job records of their
   * first time, and beyond those they are sent again.
   */
  readonly seen: string
  /**
   * ZSET, key of the row → number of the stretch it belongs to (0: none): the seen rows below which something may still
   * be unknown. A row leaves it when it is covered, or with `seen`. Lost alone: rows below may be missed until a sweep.
   */
  readonly uncovered: string
  /**
   * STRING, JSON of the open stretches: number, frontier and place of each; absent when none is open. No expiry, a few
   * entries. Lost: their rows stay uncovered, the next walk passes them again.
   */
  readonly stretch: string
  /**
   * HASH, key of a row that could not be read → JSON of it with the reason. No expiry; bounded in number and bytes, the
   * oldest falls out. Lost: what people are shown, and what a retry could read again.
   */
  readonly setAside: string
  /**
   * ZSET, key of a row that could not be read → when it was set aside (ms, by Redis' clock); negative once its entry in
   * `setAside` fell out. Left by a row that was read after all, that an operator dropped, or that fell out and is
   * forgotten in `seen`. Lost alone: such a row is not looked at again when the feed shows it.
   */
  readonly setAsideTimes: string
  /** LIST, as earlier versions kept `setAside`; taken over and removed at the next poll. */
  readonly quarantine: string
  /**
   * HASH of the walk's state: a random id, which rows count, the last complete walk, counts for the status page. No expiry.
   * Lost under a running process: total loss of Redis, which is reported, and the feed is walked again.
   */
  readonly meta: string
  /** HASH, depth and time of the sweep. No expiry. Lost: the sweep begins at the top again. */
  readonly sweep: string
  /** Where the units of one budget day are counted; `dayKey` is its `YYYY-MM-DD`. */
  units(dayKey: string): string
  /**
   * ZSET, one member a request, scored by Redis' own clock in ms: the sliding minute over all replicas. Expires a
   * minute after the last request. Lost: at most one minute's requests too many, which the feed answers with 429.
   */
  readonly minute: string
  /**
   * HASH `{limit, untilMs, forMs}`: the feed said 429, nobody asks before. Expires at that instant. Lost: one more 429, which
   * sets it again.
   */
  readonly hold: string
  /** STRING, JSON of the schedule's snapshot (what it learned). No expiry. Lost: the schedule learns again from `activeHours`. */
  readonly profile: string
  /** STRING, JSON of the budget that the feed's refusals showed. No expiry. Lost: the next refusal shows it again. */
  readonly grant: string
  /**
   * HASH `{resetsAtMs, sinceMs, startMs, used}`: the API's own budget day, as its refusals showed it, where it differs from
   * the configured one, and its units. No expiry. Lost: the next refusal shows it again.
   */
  readonly apiDay: string
  /** STRING, JSON of what the poller last told about itself, for the status page of every replica. Expires after 7 days. Lost: unknown until the next poll. */
  readonly status: string
  /**
   * HASH, id of the alert → JSON of the routes that withheld it, and why (muted, silenced, throttled, or no route at all),
   * with its row. Kept as long as records of deliveries (`retention`). Lost: the record, and the way to replay it.
   */
  readonly held: string
  /** ZSET, id of the alert → when it was withheld (ms), by which `held` is trimmed. */
  readonly heldTimes: string
  /** STRING, JSON of the account's alert rules as far as routes ask of them. Expires after a day. Lost: they are read again, for units. */
  readonly rules: string
  /**
   * STRING, the account in whose ledger this source last counted; absent: in its own. No expiry. Lost: where the config then
   * names another account, the day's units are granted once more.
   */
  readonly spendsIn: string
  /** HASH, kind → how many alerts had it, at most 200 kinds; with that many, nothing more is counted. No expiry. Lost: they are counted again; until then no route is said to ask for a kind that does not exist. */
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
    uncovered: `${root}:uncovered`,
    stretch: `${root}:stretch`,
    setAside: `${root}:set-aside`,
    setAsideTimes: `${root}:set-aside-times`,
    quarantine: `${root}:quarantine`,
    meta: `${root}:meta`,
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
    spendsIn: `${root}:spends-in`,
    kinds: `${root}:kinds`,
    override: `${root}:override`,
  }
}

/**
 * STRING, the times (ms) since which people know of one trouble (`breaker:SINK`, `dead:SINK`, `source:NAME`,
 * `failing:NAME`, `rows:NAME`, `orphan-sink:NAME`, `orphan-source:NAME`) and when they were last told of it. It goes when
 * the trouble is over (`dead` and `rows`, which have no end, stay); expires 30 days after the last telling. Lost: people are told again, and not told that it is over.
 */
export function noticeKey(prefix: string, trouble: string): string {
  return `${hashTag(prefix)}:notice:${trouble}`
}

/**
 * STRING, how far something was told of: of a sink's dead letters the time (ms), `SINK`; of a source's quarantine the
 * number of rows, `rows:NAME`. No expiry. Lost: the last hour's dead letters, or the rows that are set aside, are told again.
 */
export function noticedKey(prefix: string, what: string): string {
  return `${hashTag(prefix)}:noticed-dead:${what}`
}

/**
 * STRING, JSON: since when a sink is down, and why, as the processes that send to it have found. Goes when it answers, or
 * `breakerKeptMs` after the last process that said so. Lost: a process that starts in an outage finds out by itself.
 */
export function breakerKey(prefix: string, sink: string): string {
  return `${hashTag(prefix)}:breaker:${sink}`
}

/**
 * HASH `{receiver, held, clock, plan:<plan>: n …}`: by whose config and clock alerts of a sink are put off. `receiver`: the
 * mark of the one that the lane which began last sends to; `held`: of the one that asked for the hold which runs; `clock`:
 * what that of the last look showed (ms); `plan`: a digest for whose marks alerts wait, with how many ever did. Expires
 * `putOffKeptMs` after its last change. Lost: the next lane looks through all that is put off.
 */
export function putOffKey(prefix: string, sink: string): string {
  return `${hashTag(prefix)}:put-off:${sink}`
}

/** Longer than anything is put off. */
export const putOffKeptMs = 31 * 24 * 60 * 60 * 1_000

/** Who starts after nobody has sent to the sink for longer finds out by itself. */
export const breakerKeptMs = 7 * 24 * 60 * 60 * 1_000

/**
 * STRING, the token of the replica that polls this source, which begins with who that is. Expires when it is not renewed (by Redis' clock). Lost:
 * another replica takes it; two that poll for a moment cost a unit, never an alert.
 */
export function leaseKey(prefix: string, source: string): string {
  return `${hashTag(prefix)}:lease:${source}`
}

/** HASH, id → JSON of the silence. No expiry (ended ones are removed by their owner). Lost: alerts that were silenced are sent. */
export function silencesKey(prefix: string): string {
  return `${hashTag(prefix)}:silences`
}

/**
 * HASH `{untilMs, pending}`: until when one throttle of one route lets nothing more pass, by Redis' clock, and how many it
 * has held back since it last did. Expires `throttleKeptMs` after that end at the earliest. Lost: the next alert passes and tells no count.
 */
export function throttleKey(prefix: string, name: string): string {
  return `${hashTag(prefix)}:throttle:${name}`
}

/**
 * STRING, what a throttle has decided of one alert, so that taking its page again decides the same. Expires after
 * `throttleKeptMs`. Lost: the alert is decided again; at worst it is counted twice.
 */
export function throttledKey(prefix: string, name: string, alert: string): string {
  return `${hashTag(prefix)}:throttle:${name}:${alert}`
}

/** How long a page may be taken again, and how long a count waits for the next alert that passes. */
export const throttleKeptMs = 24 * 60 * 60 * 1_000

/**
 * SET, the names of all sinks that ever had an alert in their queue: each is here before its first one is. A name goes
 * when it is in no config and its queue is empty. Lost: the names in the queues' keys, which are looked for once
 * (`namesFound`); alerts of a sink that left the config before that are still in their queue.
 */
export function sinkNamesKey(prefix: string): string {
  return `${hashTag(prefix)}:names:sinks`
}

/**
 * HASH, the names of all sources that ever polled → JSON `{mark, dropped}`, a hash of its address and token by which its account
 * is known again under another name. A name goes when its memory is carried over; that of one that was dropped stays, so that
 * what it had spent on that day counts. Lost: as with `sinkNamesKey`.
 */
export function sourceNamesKey(prefix: string): string {
  return `${hashTag(prefix)}:names:sources`
}

/**
 * ZSET, `SINK PROCESS` → when (ms, by Redis' clock) this process last said that it has the sink in its config. Trimmed by
 * score, 20 seconds. Lost: alerts of a sink that only another replica knows are taken for left behind, for 5 seconds.
 */
export function servedSinksKey(prefix: string): string {
  return `${hashTag(prefix)}:names:served`
}

/** STRING, when (ms) the names were looked for in the keys of an installation that did not write them down. Lost: again. */
export function namesFoundKey(prefix: string): string {
  return `${hashTag(prefix)}:names:found`
}

/** What `SCAN` finds the keys by that every queue and every source has, and the name in such a key. */
export function namedKeys(prefix: string): { pattern: string; nameOf(key: string): KeyName | undefined } {
  const tag = hashTag(prefix)
  return {
    pattern: `${tag}:*:meta`,
    nameOf(key) {
      const [kind, name, ...rest] = key.startsWith(`${tag}:`) ? key.slice(tag.length + 1).split(':') : []
      if (name === undefined || rest.join(':') !== 'meta') return undefined
      if (kind === 'queue') return { kind: 'sink', name }
      return kind === 'source' ? { kind: 'source', name } : undefined
    },
  }
}

export interface KeyName {
  readonly kind: 'sink' | 'source'
  readonly name: string
}

/** Any type, gone within a second: what the check at the start tries its commands on. */
export function probeKey(prefix: string): string {
  return `${hashTag(prefix)}:probe`
}

/**
 * The `prefix` option of every BullMQ queue and worker; BullMQ owns the keys beneath, but for two fields of a job's hash
 * (`delivery/job-marks.ts`) and the tags of targets (`targetTagsName`). Lost: the jobs in it, together with the memory that they were seen, so that the next poll
 * makes them again.
 */
export function queuePrefix(prefix: string): string {
  return `${hashTag(prefix)}:queue`
}

/**
 * SET beside a queue, the tags of all targets that its alerts ever had. It goes with the name of its sink. Lost: alerts of
 * a recipient that left the config are not found by their id.
 */
export const targetTagsName = 'targets'

/**
 * HASH, key of the units of one ledger on a budget day → key of those of another, where both are counted on that day: a
 * source has counted in the one and in the other. Expires `unitsKeptMs` after its last change. Lost: they are two again, and
 * may grant more than a day's units together.
 */
export function joinedUnitsKey(prefix: string, dayKey: string): string {
  return `${hashTag(prefix)}:joined-units:${dayKey}`
}

/** How long the count of a budget day is kept: far beyond its end, whatever the length of the day and the clocks. */
export const unitsKeptMs = 3 * 24 * 60 * 60 * 1_000

/**
 * HASH `{used, <purpose>: units …, half:<half hour>: units …}` (and from earlier versions `from:…`). Expires `unitsKeptMs` after its last change. Lost: the bridge may spend the day's
 * units again; what the account really has left, the feed tells with a 429 that sets `hold`.
 */
function unitsKey(root: string, dayKey: string): string {
  return `${root}:units:${dayKey}`
}

function hashTag(prefix: string): string {
  return `{${prefix}}`
}

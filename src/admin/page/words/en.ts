import { type HtmlPart, html } from '../../../alert/text/html.ts'
import { formatDuration } from '../../../lib/duration.ts'
import { lagSecondsMax } from '../../../telemetry/lag-buckets.ts'
import { purposeWords } from '../../purpose-words.ts'
import type { WithheldCause } from '../../views/delivery-view.ts'
import type { Finding, Verdict } from '../../views/status-view.ts'
import { foreign } from '../foreign.ts'

/** How a finding shows times: an instant as how far it is from now, and a sentence of the bridge with those within it. */
interface FindingTimes {
  readonly distance: (iso: string) => HtmlPart
  readonly sentence: (text: string) => HtmlPart
}

/** The words of the status page in English; `PageWords` is the form of every other language. */
export const english = {
  language: 'en' as 'en' | 'fa',
  direction: 'ltr' as 'ltr' | 'rtl',
  count: formatCount,
  duration: formatDuration,
  lag: (span: string, isMore: boolean) => `${isMore ? 'over ' : ''}${span}`,
  percent: (whole: number) => `${whole}%`,
  list: ', ',
  dot: ' · ',
  /** A sentence from below the page, which is always English. */
  fromBelow: (text: HtmlPart): HtmlPart => text,

  headline: ({ headline }: Verdict): string => headline,
  finding: ({ text }: Finding, { sentence }: FindingTimes): HtmlPart => sentence(text),
  allWell: (sources: number, sinks: number) =>
    `Redis answers, ${plural(sources, 'source')} polled, ${plural(sinks, 'sink')} taking deliveries.`,
  up: (span: string) => `up ${span}`,
  only: (role: string) => `${role} only`,
  noStatus: 'The status cannot be read now',
  noStory: 'The alert cannot be read now',
  noAlert: 'There is no such alert',
  notKnown: (name: string) => `No alert ${name} is known (any more).`,
  tooLate: 'It did not come within the time limit.',
  logSays: 'The log of the bridge says why.',
  lagSeen: 'Fired → seen',
  lagDone: 'Fired → acknowledged',
  lagNone: 'nothing measured yet',
  p95: (span: string, slowest = false) => `p95 ${span}${slowest ? ', the slowest' : ''}`,
  queues: 'In the queues',
  queuesNote: 'waiting, sending, for later',
  today: 'Delivered today',
  bySinks: (sinks: number) => (sinks === 1 ? 'by one sink' : `by ${sinks} sinks`),
  letters: 'Dead letters',
  lettersNote: 'until retried or dropped',
  noToken: 'Set http.adminToken in the config to act from here.',
  foot: { status: 'status as JSON', metrics: 'metrics', ready: 'readiness' },
  stale: 'The bridge does not answer. This page shows its last answer.',

  sources: 'Sources',
  unrouted: (alerts: number) => `${plural(alerts, 'alert')} had no route`,
  quarantined: (rows: number) =>
    `${plural(rows, 'row')} could not be read and ${rows === 1 ? 'is' : 'are'} quarantined (/api/v1/quarantine)`,
  fellOut: (rows: number) => `of ${plural(rows, 'row')} the copy fell out, since the quarantine was full`,
  sourceStates: {
    starting: 'starting',
    running: 'polling',
    catching_up: 'catching up',
    retrying: 'trying again',
    failing: 'failing',
    budget_spent: 'budget spent',
    queues_full: 'queues full',
    standby: 'another replica polls',
    stopped: 'stopped',
  },
  /** Why the next poll is planned for that time; shown after "in 8s:". */
  whyNext: {
    first: 'the first poll',
    fixed: 'a fixed pace is set',
    even: 'units spread evenly',
    expected: 'alerts are expected about now',
    burst: 'alerts just came, more are likely',
    floor: 'quiet hours, nobody waits for ever',
    ceiling: 'as fast as allowed',
    announced: 'the API announces an evaluation of rules',
    mark: 'alerts fire on the mark',
    hot: 'an operator asked for it',
    catch_up: 'more pages are waiting',
    retry: 'the last call failed',
    budget_spent: 'nothing left until the reset',
  },
  noBudget: 'The budget is not known yet.',
  lastPoll: 'Last poll',
  nextPoll: 'Next poll',
  feedComplete: 'Feed complete',
  behind: 'older pages still to read',
  process: (machine: string, id: string, since: string): HtmlPart =>
    `${machine}, process ${id}, running since ${since}`,
  polledBy: (process: HtmlPart) => html`Polled by ${process}.`,
  plan: (alerts: number, firing: string): HtmlPart =>
    `Plan ${alerts > 0 ? `learned from ${plural(alerts, 'alert')}` : 'as configured so far'}; alerts fire ${firing}.`,
  hotUntil: (when: HtmlPart) => html` Polled more often on request, which ends ${when}.`,
  silentRules: (silent: number, rules: number, when: HtmlPart) =>
    html`${silent} of ${plural(rules, 'rule')} may not fire, as read ${when}:`,
  andMore: (rest: number) => `and ${formatCount(rest)} more`,
  notFollowed: (rules: number): HtmlPart =>
    ` The API announces evaluations of ${plural(rules, 'rule')}, which polls do not follow.`,
  followed: (rules: number, names: HtmlPart): HtmlPart =>
    html` Polls follow the evaluations that the API announces of ${plural(rules, 'rule')} (${names}).`,
  unitsUsed: (used: number, all: number) => html`<b>${formatCount(used)}</b> of ${formatCount(all)} units`,
  resets: (when: HtmlPart) => html`resets ${when}`,
  used: (percent: string) => `${percent} used`,
  dayOver: (percent: string) => `${percent} of the day over`,
  budgetBar: (used: string, over: string) => `${used} of the units used, ${over} of the day over`,
  spentFor: (parts: string) => `Units spent for ${parts}`,
  purposes: purposeWords,
  hour: (from: string, planned: number, past?: { readonly units: number; readonly alerts: number }) =>
    `${from}: ${past ? `${plural(past.units, 'unit')} spent, ${plural(past.alerts, 'alert')} seen, ` : ''}${plural(planned, 'poll')} planned`,
  day: (units: number, alerts: number, planned: number) =>
    `Today ${plural(units, 'unit')} for ${plural(alerts, 'alert')}; the plan has ${formatCount(planned)} by now.`,
  sharedDay: (sources: number) =>
    `Units are of all ${formatCount(sources)} sources of the account, alerts and plan of this one.`,
  legend: { spent: 'units spent', planned: 'polls planned', seen: 'alerts seen' },
  hot: 'Poll more often',
  hotAsk: (name: string) => `Source ${name} is polled up to four times as often, within its budget.`,

  sinks: 'Sinks',
  sinkHeads: {
    sink: 'Sink',
    state: 'State',
    waiting: 'Waiting',
    active: 'Sending',
    delayed: 'Later',
    dead: 'Dead',
    today: 'Today',
    lag: 'Lag p50 · p95',
    last: 'Last result',
  },
  sinkStates: { active: 'taking', paused: 'paused', open: 'resting', stuck: 'stuck' },
  refuses: 'refusing',
  putsOff: 'putting off',
  unknownState: 'not known',
  results: { delivered: 'delivered', retry: 'to be tried again', dead: 'given up' },
  nothingSent: 'nothing sent yet',
  hours: (done: number, dead: number) =>
    `${plural(done, 'alert')} acknowledged and ${formatCount(dead)} given up on in the last 24 hours`,
  queueCurve: (most: string) => `Queue over 24 hours, ${most} at most`,
  sendCurve: (most: string) =>
    `How long sends took over 24 hours, ${most} at most in the mean of a quarter hour`,
  sendTakes: (span: string) => `a send takes ${span}`,
  ends: (when: HtmlPart) => html`ends ${when}`,
  since: (when: HtmlPart) => html`since ${when}`,
  askedForPause: (ends: HtmlPart) => html`the sink asked for a pause that ends ${ends}`,
  nextProbe: (when: HtmlPart) => html`, next probe ${when}`,
  takes: (span: string) => `, takes ${span}`,
  pause: 'Pause',
  pauseAsk: (name: string) =>
    `Alerts for ${name} wait in its queue, in all replicas, until the time is over or it is resumed.`,
  pauseFor: 'For (empty: until resumed)',
  resume: 'Resume',
  resumeAsk: (name: string) => `What waits for ${name} is sent.`,
  probe: 'Probe now',
  probeAsk: (name: string) => `One alert is sent to ${name} now, without waiting for the next probe.`,
  retryDead: 'Retry dead',
  dropDead: 'Drop dead',
  /** `areMore`: not all were counted. */
  retryAsk: (letters: number, where: string, areMore = false) =>
    `${areMore ? 'At least ' : ''}${plural(letters, 'dead letter')} of ${where} go back into the queue, with fresh attempts; also those that came meanwhile.`,
  dropAsk: (letters: number, where: string, areMore = false) =>
    `${areMore ? 'At least ' : ''}${plural(letters, 'dead letter')} of ${where} are deleted for ever; also those that came meanwhile.`,

  letterHeads: {
    sink: 'Sink',
    reason: 'Reason',
    count: 'Count',
    first: 'First',
    last: 'Last',
    sample: 'A sample',
  },
  grouped: (looked: number, total: number) =>
    `grouped from the newest ${formatCount(looked)} of ${formatCount(total)}`,
  retryGroup: 'Retry group',
  dropGroup: 'Drop group',
  copyCommand: 'copy command',

  latest: 'Latest alerts',
  older: 'Older alerts',
  olderLink: 'older',
  all: 'all',
  filterLabel: 'Filter by state',
  rowStates: {
    waiting: 'waiting',
    active: 'sending',
    delayed: 'to retry',
    delivered: 'delivered',
    dead: 'dead',
    held: 'held back',
  },
  /** Delayed, and perhaps for the first time. */
  sentLater: 'later',
  noDeliveries: 'The deliveries cannot be read now.',
  noneLikeThat: 'None like that.',
  noneAmong: (looked: number) => `None like that among ${formatCount(looked)} alerts; there are older ones.`,
  noneYet: 'No alert was seen yet.',
  seenAfter: (span: string) => `seen after ${span}`,
  nextTry: (when: HtmlPart) => html`next try ${when}`,
  /** Of what the list is narrowed by, as the address has it. */
  filters: {} as Readonly<Record<string, string>>,

  back: '← all alerts',
  rules: (rules: number, ids: HtmlPart) => html`${rules === 1 ? 'rule' : 'rules'} ${ids}`,
  fired: 'fired',
  seen: 'seen',
  byPoll: (when: HtmlPart, page: number | null) =>
    html`by the poll of ${when}${page === null || page === 1 ? null : ` on page ${page}`}`,
  later: (span: string) => `, ${span} later`,
  heldBack: 'held back',
  heldFrom: (sinks: string) => `from ${sinks}: `,
  droppedFrom: (sink: HtmlPart, when: HtmlPart) => html`<b>dropped</b> from ${sink} by an operator, ${when}`,
  held: (
    { text, until }: WithheldCause & { readonly text: string },
    when: (iso: string) => HtmlPart,
  ): HtmlPart => {
    const at = until === null ? -1 : text.indexOf(until)
    if (until === null || at < 0) return foreign(text)
    return html`${foreign(text.slice(0, at))}${when(until)}${foreign(text.slice(at + until.length))}`
  },
  noSink: 'no sink',
  /** Why a sink did not take an alert, by the reason in its record; a reason without an entry is shown as it is. */
  reasons: {} as Readonly<Record<string, string>>,
  noRoute: 'no route named a sink for it',
  deliveries: 'Deliveries',
  byRoutes: (routes: number, names: HtmlPart) => html`by ${routes === 1 ? 'route' : 'routes'} ${names}`,
  nothingWasSent: 'nothing was sent yet',
  sinkIs: (state: string) => `the sink is ${state}`,
  sinkIsGone: 'this sink is not in the config: alert-bridge orphans moves or drops what waits for it',
  sentAgain: 'sent again by an operator',
  lastTime: (when: HtmlPart) => html`, the last time ${when}`,
  took: (span: string) => `, took ${span}`,
  /** Of its context, what could not be had. */
  without: (what: HtmlPart) => html`without context: ${what}`,
  recipients: (sink: string, recipients: number) => `${sink} (${plural(recipients, 'recipient')})`,
  retry: 'Retry',
  retryOneAsk: (name: string, sink: string) =>
    `${name} goes back into the queue of ${sink}, with fresh attempts.`,
  drop: 'Drop',
  dropOneAsk: (name: string, sink: string) => `The dead letter of ${name} at ${sink} is deleted for ever.`,
  again: 'Send again',
  againAsk: (name: string, sink: string) => `${name} is sent to ${sink} once more, with the same webhook-id.`,
  silence: 'Silence what is like it',
  silenceAsk:
    'Alerts that match all of these are held back from every sink for a while. They are recorded and can be sent later.',
  silences: 'Silences',
  noSilences: 'none',
  newSilence: 'Add a silence',
  everyAlert: 'every alert',
  silenceTime: (starts: HtmlPart, ends: HtmlPart): HtmlPart =>
    starts === null ? html`ends ${ends}` : html`starts ${starts}, ends ${ends}`,
  endSilence: 'End now',
  endSilenceAsk: (id: string) =>
    `Silence ${id} ends. What it has held back stays held back; it can be sent with alert-bridge replay.`,
  fields: { symbol: 'Symbol', kind: 'Kind', rule: 'Rule', for: 'For', why: 'Why' },

  actions: 'What operators did',
  /** By the names that the audit has. */
  did: {} as Readonly<Record<string, string>>,
  alerts: (alerts: number) => plural(alerts, 'alert'),
  idsMore: (rest: number) => ` and ${formatCount(rest)} more`,
  quote: (text: HtmlPart) => html` “${text}”`,
  byWhom: (token: string, address: string): HtmlPart => `${token}, from ${address}`,
  ago: (span: string) => `${span} ago`,
  ahead: (span: string) => `in ${span}`,
  now: 'now',
  noTime: 'at an unknown time',
}

export type PageWords = typeof english

/** `12,480`; a dash for what is not known. */
export function formatCount(number: number | null): string {
  return number === null ? '–' : number.toLocaleString('en-US')
}

/** Of a quantile of a histogram: beyond its last bound there is no more detail. */
export function lagText(seconds: number, words: Pick<PageWords, 'lag' | 'duration'> = english): string {
  return words.lag(words.duration(seconds * 1_000), seconds >= lagSecondsMax)
}

/** A count that was expected, not made: below 10 with one decimal, so that one in some hours is not shown as none in each. */
export function roundedCount(expected: number): number {
  return expected < 10 ? Math.round(expected * 10) / 10 : Math.round(expected)
}

/** `1 row`, `3 rows` */
function plural(number: number, noun: string): string {
  return `${formatCount(number)} ${noun}${number === 1 ? '' : 's'}`
}

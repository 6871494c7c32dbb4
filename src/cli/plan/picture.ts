import { roundedCount } from '../../admin/page/words/en.ts'
import { formatDuration } from '../../lib/duration.ts'
import { wallTime } from '../../lib/zone.ts'
import { rulesMax } from '../../schedule/announced/evidence.ts'
import { budgetFindings } from '../../schedule/budget.ts'
import { profileZone } from '../../schedule/forecast/profile.ts'
import { marksLeftTexts } from '../../schedule/marks/phase.ts'
import { type PolicyName, policyNames } from '../../schedule/pace/family.ts'
import { keptShareMin } from '../../schedule/pace/guard.ts'
import type { Preview } from '../../schedule/preview.ts'
import type { AnnouncedView, ScheduleOptions } from '../../schedule/schedule.ts'
import { printable } from '../../telemetry/printable.ts'

/** The plan as a chart for the terminal, with the reasons in words. */

const barWidth = 40

/** Where nobody could look. */
export const unknownText =
  'What the bridge has learned is not known, since its Redis could not be asked: the plan goes by the active hours of the config.'

export function describePreview(
  name: string,
  options: ScheduleOptions,
  preview: Preview,
  isKnown = true,
): string {
  const most = Math.max(1, ...preview.hours.map(({ polls }) => polls))
  const zone = profileZone(options)
  const lines = preview.hours.map(({ startMs, polls, alerts, lagSeconds }) => {
    const hour = new Date(wallTime(startMs, zone)).toISOString().slice(11, 16)
    return `  ${hour}  ${bar(polls / most)} ${pad(roundedCount(polls), 5)} polls  ${pad(alerts.toFixed(1), 6)} alerts  ${pad(formatDuration(lagSeconds * 1_000), 7)}`
  })
  return [
    `${name}: ${options.unitsPerDay} units a day, the coming ${preview.hours.length} hours on the clock of ${zone}`,
    '',
    ...lines,
    '',
    ...reasons(options, preview, isKnown).map((line) => `  ${line}`),
    ...budgetFindings(options, preview).map(({ severity, text }) => `  ${severity}: ${text}`),
    '',
  ].join('\n')
}

export function previewJson(
  name: string,
  options: ScheduleOptions,
  preview: Preview,
  isKnown = true,
): object {
  const { marks, markPeriod, marksLeft, hours, weights, ...rest } = preview
  return {
    source: name,
    unitsPerDay: options.unitsPerDay,
    everySeconds: options.everyMs === undefined ? null : options.everyMs / 1_000,
    ...rest,
    mix: Object.fromEntries(policyNames.map((name, policy) => [name, weights[policy] ?? 0])),
    marks: marks ? { waitSeconds: marks.waitSeconds, minuteWeights: marks.minuteWeights } : null,
    markPeriod: markPeriod
      ? { periodSeconds: markPeriod.periodMs / 1_000, waitSeconds: markPeriod.waitSeconds }
      : null,
    hours: hours.map(({ startMs, ...hour }) => ({ start: new Date(startMs).toISOString(), ...hour })),
    findings: budgetFindings(options, preview),
    why: reasons(options, preview, isKnown),
  }
}

function reasons(options: ScheduleOptions, preview: Preview, isKnown: boolean): string[] {
  const { lagSeconds, evenLagSeconds, bestRatio, learnedFrom, slowestSeconds, fastestSeconds, announced } =
    preview
  if (options.everyMs !== undefined) {
    const every = formatDuration(options.everyMs)
    return [
      `poll.every fixes the pace at ${every}: alerts wait ${formatDuration(lagSeconds * 1_000)} on average. Nothing is learned.`,
    ]
  }
  const share = ((100 * lagSeconds) / evenLagSeconds).toFixed(0)
  const nothing = isKnown
    ? 'Nothing is learned yet: the plan goes by the active hours of the config.'
    : unknownText
  const learned =
    learnedFrom < 10
      ? nothing
      : `The profile was learned from ${Math.round(learnedFrom)} alerts (a batch counts once), old ones counting for less.`
  return [
    learned,
    `${announced?.follows ? 'But for what the API announces, the plan is' : 'The plan is'} a mix of ${mixText(preview.weights)}, weighted by how well each would have done on the past days.`,
    `Alerts are expected to wait ${formatDuration(lagSeconds * 1_000)}, ${share} % of the ${formatDuration(evenLagSeconds * 1_000)} of evenly spaced polls${bestRatio === undefined ? '.' : ';'}`,
    ...(bestRatio === undefined
      ? []
      : [
          `for alerts that come in this way no plan could reach less than ${(100 * bestRatio).toFixed(0)} %.`,
        ]),
    `No gap is longer than ${formatDuration(slowestSeconds * 1_000)} (poll.floor ${options.floor}, poll.maxInterval ${formatDuration(options.maxIntervalMs)}) or shorter than ${formatDuration(fastestSeconds * 1_000)} (poll.minInterval).`,
    `At any time at least about ${100 * keptShareMin} % of what evenly spaced polls of the rest of the day would take is kept for what nobody expects, and released bit by bit until the reset at ${options.resetsAt} (${options.timeZone}).`,
    ...(announced === null ? [] : [printable(announcedText(announced))]),
    ...(announced?.follows || !isKnown ? [] : [marksText(preview)]),
  ]
}

/** How many rules are named in a sentence. */
const inTextMax = 5

/** A sentence for people. It names the rules only while polls follow them. The names are text from the API. */
export function announcedText({ follows, ruleCount, rules }: AnnouncedView): string {
  const newest = ruleCount < rulesMax ? '' : 'the newest '
  const count = `${newest}${ruleCount} ${ruleCount === 1 ? 'rule' : 'rules'}`
  if (!follows)
    return `The API announces evaluations of ${count}; polls do not follow them, as far as alerts have shown.`
  const shown = rules.slice(0, inTextMax).map(({ id, name }) => (name === '' ? id : `${id} ${name}`))
  const more = ruleCount > shown.length ? ` and ${ruleCount - shown.length} more` : ''
  return `Polls follow the evaluations that the API announces of ${count} (${shown.join(', ')}${more}).`
}

function marksText({ marks, markPeriod, marksLeft }: Preview): string {
  const found = 'Alerts fire at recurring instants (marks)'
  if (marks)
    return `${found}: polls are made just after these, and with a poll a minute an alert waits ${marks.waitSeconds.toFixed(1)} s.`
  if (markPeriod)
    return `${found}, every ${markPeriod.periodMs / 1_000} s: polls are made just after one of these, ${markPeriod.waitSeconds.toFixed(1)} s after an alert that fires there.`
  if (marksLeft) return `${found}, but ${marksLeftTexts[marksLeft]}.`
  return 'No recurring instants at which alerts fire were found.'
}

const policyTexts: Readonly<Record<PolicyName, string>> = {
  even: 'evenly spaced polls',
  profile: 'the usual hours',
  profile_recent: 'the usual hours with recent alerts',
  mean_recent: 'recent alerts alone',
}

function mixText(weights: readonly number[]): string {
  return policyNames
    .map((name, policy) => ({ text: policyTexts[name], share: Math.round(100 * (weights[policy] ?? 0)) }))
    .filter(({ share }) => share > 0)
    .toSorted((a, b) => b.share - a.share)
    .map(({ text, share }) => `${share} % ${text}`)
    .join(', ')
}

function bar(share: number): string {
  const eighths = Math.round(share * barWidth * 8)
  const full = '█'.repeat(Math.floor(eighths / 8))
  const rest = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? ''
  return (full + rest).padEnd(barWidth)
}

function pad(value: number | string, width: number): string {
  return String(value).padStart(width)
}

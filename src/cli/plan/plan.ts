import type { Command } from 'commander'
import type { SourcePlanView } from '../../admin/ports.ts'
import type { StatusView } from '../../admin/views/status-view.ts'
import type { KnownOfSource } from '../../app/source/known.ts'
import { scheduleOptionsOf, usualSource, withUnits } from '../../app/source/schedule-options.ts'
import { sharingWith, unitsOfSource } from '../../config/checks/accounts.ts'
import type { Config, SourceConfig } from '../../config/schema.ts'
import { unitsPerDayMax } from '../../config/source.ts'
import { given } from '../../lib/given.ts'
import { wallTime } from '../../lib/zone.ts'
import { hourStartMs, previewPlan } from '../../schedule/preview.ts'
import type { ScheduleOptions } from '../../schedule/schedule.ts'
import type { Target } from '../../schedule/simulate.ts'
import { configOf } from '../arguments/config-file.ts'
import { sourceOf } from '../arguments/config-source.ts'
import { countOption, UsageError, urlOption } from '../arguments/usage.ts'
import { connectDaemon, type Daemon } from '../client/daemon.ts'
import { namedCommand } from '../command-texts.ts'
import { print, printJson } from '../output/output.ts'
import { type ContextCosts, contextCosts, describeContextCosts } from './context.ts'
import { describePreview, previewJson } from './picture.ts'
import {
  notReached,
  printTarget,
  targetByProfile,
  targetByTrace,
  targetJson,
  targetOption,
} from './target.ts'
import { readTrace, simulateFile } from './trace.ts'

/** Reads what a running bridge has learned of a source; undefined when its Redis cannot be reached. */
type ReadLearned = (config: Config, source: string) => Promise<KnownOfSource | undefined>

interface Options {
  readonly config?: string
  readonly url?: string
  readonly source?: string
  readonly hours: number
  readonly trace?: string
  readonly unitsPerDay?: number
  readonly timeZone?: string
  readonly polls?: string
  readonly json?: boolean
  readonly target?: Target
}

/** What one plan is drawn from. */
interface SourcePlan {
  readonly name: string
  readonly source: Pick<SourceConfig, 'budget' | 'poll'>
  readonly learned: unknown
  /** False where no Redis answered. */
  readonly isKnown?: boolean
  /** Of its account, a day; of a bridge of before, those that its plan may use. */
  readonly unitsPerDay: number
  /** When its budget days begin, as far as a bridge knows it. */
  readonly resetsAt: string | undefined
  /** How many of the units of its account its plan may use. */
  readonly partOf?: (unitsPerDay: number) => number
  /** What its routes cost for context; only a config says that. */
  readonly contextOf?: (plan: Parameters<typeof contextCosts>[2]) => ContextCosts | undefined
}

/** A year; it takes a second or two. */
const hoursMax = 8_784

/** `plan`: the polling plan of the next hours, or, with `--trace`, when the planner would have polled in a history. */
export function planCommand(readLearned?: ReadLearned): Command {
  return namedCommand('plan')
    .option('--config <file>', 'the config, YAML')
    .option(
      '--url <url>',
      'of a running bridge: its plan, with what it has learned, without a config',
      urlOption,
    )
    .option('--source <name>', 'the source of the config; default: all of them, or with --trace the only one')
    .option('--hours <count>', 'how far to plan', countOption('--hours', hoursMax), 24)
    .option(
      '--trace <file>',
      'firing times, an ISO time a line, oldest first; without --config, with the defaults of a config',
    )
    .option('--units-per-day <count>', 'units a budget day', countOption('--units-per-day', unitsPerDayMax))
    .option('--time-zone <zone>', 'the zone of the budget day, by its IANA name')
    .option('--polls <file>', 'with --trace: where to write the time of each poll, a line each')
    .option(
      '--target <lag>',
      'the smallest budget that reaches a lag: mean, p50, p95 or p99, as p95=10s',
      targetOption,
    )
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const config = options.config === undefined ? undefined : configOf(options.config).config
      if (options.trace !== undefined && options.target !== undefined)
        return await printTraceTarget(options.target, options.trace, options, config)
      if (options.trace !== undefined)
        return simulateFile(traceOptions(options, config), { ...options, trace: options.trace })
      if (config !== undefined) return printPlans(plansOf(config, options, readLearned), options)
      if (options.url === undefined && !process.env['ALERT_BRIDGE_URL'])
        throw new UsageError(
          'plan needs --config FILE, --url of a running bridge, or --trace FILE with --units-per-day N.',
        )
      await printPlans(plansOfBridge(connectDaemon(given({ url: options.url })), options.source), options)
    })
}

async function* plansOf(
  config: Config,
  options: Options,
  readLearned: ReadLearned | undefined,
): AsyncGenerator<SourcePlan> {
  const names = options.source === undefined ? Object.keys(config.sources) : [options.source]
  for (const name of names) {
    const [, source] = sourceOf(config, name)
    const known = await readLearned?.(config, name).catch(() => undefined)
    const partOf = (units: number) => unitsOfSource(source, sharingWith(config.sources, name), units)
    yield {
      name,
      source,
      learned: known?.learned,
      isKnown: known !== undefined || readLearned === undefined,
      unitsPerDay: known?.unitsOfAccount ?? source.budget.unitsPerDay,
      resetsAt: known?.resetsAt,
      partOf,
      contextOf: (plan) => contextCosts(config, name, plan),
    }
  }
}

async function printPlans(sources: AsyncIterable<SourcePlan>, options: Options): Promise<void> {
  const nowMs = Date.now()
  const plans: unknown[] = []
  const unreached: string[] = []
  for await (const {
    name,
    source,
    learned,
    isKnown = true,
    unitsPerDay,
    resetsAt,
    partOf = (units: number) => units,
    contextOf,
  } of sources) {
    // Of another time zone nothing is known.
    const reset = resetsAt === undefined || options.timeZone !== undefined ? {} : { resetsAt }
    const optionsAt = (units: number) => ({
      ...withOverrides(source, { ...options, unitsPerDay: partOf(units) }),
      ...reset,
    })
    if (options.target !== undefined) {
      const answer = targetByProfile(options.target, learned, nowMs, optionsAt)
      if (options.json) plans.push(targetJson(options.target, answer, name, isKnown))
      else if (!printTarget(options.target, answer, name, isKnown)) unreached.push(name)
      continue
    }
    const unitsOfAccount = options.unitsPerDay ?? unitsPerDay
    const schedule = optionsAt(unitsOfAccount)
    const startMs = hourStartMs(nowMs, schedule)
    const preview = previewPlan(schedule, learned, startMs, options.hours)
    const alertsOfDay = () => alertsOfBusiestDay(schedule, learned, startMs)
    const context = contextOf?.({ unitsPerDay: schedule.unitsPerDay, unitsOfAccount, alertsOfDay })
    if (options.json)
      plans.push({
        ...previewJson(name, schedule, preview, isKnown),
        ...(context === undefined ? {} : { context }),
      })
    else
      print(
        describePreview(name, schedule, preview, isKnown) + (context ? describeContextCosts(context) : ''),
      )
  }
  if (options.json) printJson(plans.length === 1 ? plans[0] : plans)
  if (options.target && unreached.length > 0) throw notReached(options.target, unreached)
}

/** Of the week to come: what a day without trade costs says nothing of the others. */
function alertsOfBusiestDay(schedule: ScheduleOptions, learned: unknown, startMs: number): number {
  const { hours } = previewPlan(schedule, learned, startMs, 7 * 24)
  const days = Array.from({ length: 7 }, (_, day) => hours.slice(day * 24, (day + 1) * 24))
  return Math.max(...days.map((day) => day.reduce((sum, { alerts }) => sum + alerts, 0)))
}

async function printTraceTarget(
  target: Target,
  trace: string,
  options: Options,
  config: Config | undefined,
): Promise<void> {
  const optionsAt = (unitsPerDay: number) => traceOptions({ ...options, unitsPerDay }, config)
  const times = await readTrace(trace, optionsAt(1).timeZone)
  const answer = targetByTrace(target, times, optionsAt)
  if (options.json) printJson(targetJson(target, answer))
  else if (!printTarget(target, answer)) throw notReached(target)
}

/**
 * The options for the simulation of a trace: those of a source of the config, with its part of the units of its account, or without
 * a config the defaults.
 */
function traceOptions(options: Options, config: Config | undefined): ScheduleOptions {
  if (config !== undefined) {
    const [name, source] = sourceOf(config, options.source)
    const unitsOfAccount = options.unitsPerDay ?? source.budget.unitsPerDay
    const unitsPerDay = unitsOfSource(source, sharingWith(config.sources, name), unitsOfAccount)
    return withOverrides(source, { ...options, unitsPerDay })
  }
  if (options.unitsPerDay === undefined)
    throw new UsageError('--trace needs --units-per-day N, or a --config that says it.')
  const { activeHours, ...usual } = withOverrides(usualSource(options.unitsPerDay), options)
  // The default trading hours are only used when they are in the time zone that was asked for.
  return activeHours?.timeZone === usual.timeZone ? { ...usual, activeHours } : usual
}

function withOverrides(source: Pick<SourceConfig, 'budget' | 'poll'>, options: Options): ScheduleOptions {
  const { unitsPerDay, timeZone } = options
  if (timeZone !== undefined) checkZone(timeZone)
  return {
    ...(unitsPerDay === undefined ? scheduleOptionsOf(source) : withUnits(source, unitsPerDay)),
    ...(timeZone === undefined ? {} : { timeZone }),
  }
}

function checkZone(timeZone: string): void {
  try {
    wallTime(0, timeZone)
  } catch {
    throw new UsageError(
      `--time-zone: "${timeZone}" is no time zone; expected an IANA name such as Asia/Tehran.`,
    )
  }
}

/** Those of a running bridge: it needs neither its config nor its Redis. */
async function* plansOfBridge(daemon: Daemon, only: string | undefined): AsyncGenerator<SourcePlan> {
  const { sources } = (await daemon.get('/api/v1/status')) as StatusView
  for (const name of only === undefined ? sources.map((each) => each.name) : [only]) {
    const answer = await daemon.get(`/api/v1/sources/${encodeURIComponent(name)}/plan`)
    const { budget, poll, learned, resetsAt, paces, ...units } = (answer as { data: SourcePlanView }).data
    const source = { budget, poll } as SourcePlan['source']
    const sharing = paces?.map((every) => ({ poll: every === null ? {} : { every } }))
    yield {
      name,
      source,
      resetsAt,
      learned: learned ?? undefined,
      unitsPerDay: units.unitsOfAccount ?? units.unitsPerDay,
      partOf: (all) => (sharing === undefined ? all : unitsOfSource(source, sharing, all)),
    }
  }
}

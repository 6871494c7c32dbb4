import type { SeenView, SourceDayView } from '../../admin/ports.ts'
import { learnedBeside, unitsBesideFixed, unitsOfSource } from '../../config/checks/accounts.ts'
import type { SourceConfig } from '../../config/schema.ts'
import type { SourceContext } from '../../context/source-context.ts'
import { createFeedClient } from '../../feed/client.ts'
import type { IntakeDeps } from '../../intake/intake.ts'
import { createProcessState, refreshProcessState, runPoll } from '../../intake/poll.ts'
import { retryQuarantined } from '../../intake/quarantine.ts'
import { runSweep } from '../../intake/sweep.ts'
import { budgetTeacher } from '../../poller/budget.ts'
import { freshPauseMs } from '../../poller/leader.ts'
import { createPoller } from '../../poller/poller.ts'
import { countExchanges } from '../../poller/reader.ts'
import type { Poller } from '../../poller/settings.ts'
import { silentRules } from '../../routing/rule-health.ts'
import { createRuleBook, type RuleBook } from '../../routing/rules.ts'
import { budgetDay, budgetFindings } from '../../schedule/budget.ts'
import { createSchedule } from '../../schedule/create.ts'
import { isActiveAt } from '../../schedule/forecast/profile.ts'
import type { BudgetDay } from '../../schedule/schedule.ts'
import { readServerRun } from '../../store/connection/server-run.ts'
import { sourceKeys } from '../../store/keys.ts'
import { createGrantStore } from '../../store/ledger/grant.ts'
import { createLedger } from '../../store/ledger/ledger.ts'
import type { Lease } from '../../store/source/lease.ts'
import { createRuleStore } from '../../store/source/rules.ts'
import { createScheduleState } from '../../store/source/schedule-state.ts'
import { createSourceOverride } from '../../store/source/source-override.ts'
import { createSourceStatus, type PollerStatus } from '../../store/source/source-status.ts'
import { createQuarantineStore, type QuarantineCounts } from '../../store/walk/quarantine.ts'
import { createWalkState } from '../../store/walk/walk-state.ts'
import type { FeedPage } from '../../walk/page.ts'
import type { RulesReport } from '../notices/rule-notices.ts'
import type { Quarantine } from '../operator-api/quarantine.ts'
import type { RuntimeTools } from '../tools.ts'
import { contextOfSource } from './context.ts'
import { currentStatus } from './current-status.ts'
import { createSourceDay, resetOf } from './day.ts'
import { unitsOfPolls } from './lookups.ts'
import { scheduleOptionsOf, unitsGranted, withUnits } from './schedule-options.ts'

/** One source of the config: its poller and all that the poller needs. */
export interface Source {
  readonly name: string
  readonly poller: Poller
  readonly rules: RuleBook
  readonly context: SourceContext
  budgetDay(): BudgetDay
  /** Why its part of so many units a day of its account does not buy what the config asks for, a sentence each. */
  tooThin(unitsOfAccount: number): readonly string[]
  /** What the replica that polls stored last; the state of this process while Redis is away. */
  status(): Promise<PollerStatus | undefined>
  /** While this process waits for the lease: which replica polls, and until when. */
  standby(): string | undefined
  counts(): Promise<QuarantineCounts & { unrouted: number }>
  readonly quarantine: Quarantine
  hot(untilMs: number): Promise<void>
  /** False where it is hot until another time than `untilMs`. */
  cool(untilMs: number | undefined): Promise<boolean>
  /** The budget day that runs, hour by hour. */
  day(): Promise<SourceDayView>
  seen(id: number): Promise<Omit<SeenView, 'source' | 'id' | 'dropped'>>
  /** What its plan has learned, as it is stored. */
  learned(): Promise<unknown>
  /** That its plan may use a day: its share of what the API grants the account. */
  unitsPerDay(): Promise<number>
  /** That the API grants its account a day. */
  unitsOfAccount(): Promise<number>
  /** When its budget days begin, `HH:MM` on the clock of the config's zone; the API may begin them at another time than the config. */
  resetsAt(): Promise<string>
  /** Resolves when the poll that runs now is over; at once when none does. */
  pollOver(): Promise<unknown>
  close(): Promise<void>
}

export interface SourceTools extends RuntimeTools {
  readonly prefix: string
  readonly inForce: { readonly intake: IntakeDeps }
  readonly tooManyWaiting: () => Promise<boolean>
  /** How many sources of the config in force spend from the ledger of this one. */
  readonly sharers: (source: string) => number
  /** These sources. */
  readonly sharing: (source: string) => readonly SourceConfig[]
  /** Called with the first page of each poll, once its rows are handled. */
  readonly onHead: (source: string, page: FeedPage) => void
  readonly onRules: (source: string, report: RulesReport) => void
  /** Called before the first poll; resolves to the reason why the source has to wait, if there is one. */
  readonly succeed: (source: string) => Promise<string | undefined>
}

export function createSource(source: string, config: SourceConfig, tools: SourceTools): Source {
  const { prefix, inForce, clock, log, metrics, tooManyWaiting, sharers, sharing } = tools
  const redis = tools.redis.commands
  const { budget, poll, account } = config
  const state = createWalkState({ redis, prefix, source, seenWindowMs: poll.seenWindow })
  const quarantined = createQuarantineStore({ redis, prefix, source })
  const feed = createFeedClient({
    source,
    baseUrl: config.baseUrl,
    token: config.token,
    clock,
    onExchange: countExchanges(metrics, source),
  })
  const plan = scheduleOptionsOf(config)
  const dayOf = (nowMs: number) => budgetDay(nowMs, plan)
  const processState = tools.processStates.get(source) ?? createProcessState(clock)
  tools.processStates.set(source, processState)
  const ledger = createLedger({
    redis,
    prefix,
    source,
    account,
    unitsPerDay: budget.unitsPerDay,
    requestsPerMinute: budget.requestsPerMinute,
    sources: () => sharers(source),
    budgetDay: dayOf,
    clock,
    knownUnits: tools.knownUnits,
  })
  let polling: Promise<unknown> = Promise.resolve()
  let lease: Lease | undefined
  const begin = <T>(work: Promise<T>): Promise<T> => {
    polling = work.catch(() => {})
    return work
  }
  const onHead = (page: FeedPage) => tools.onHead(source, page)
  const walkDeps = { state, inForce, onHead, clock, log, metrics }
  const walking = { source, startFrom: config.startFrom, processState }
  const closing = new AbortController()
  const grants = createGrantStore({ redis, prefix, source, account })
  const granted = () => unitsGranted(grants, config, clock.now())
  const unitsPerDay = async () => unitsOfSource(config, sharing(source), await granted())
  const rules = createRuleBook({
    source,
    feed,
    closing: closing.signal,
    ledger,
    onBudgetRefused: budgetTeacher(
      { source, ledger, budgetDay: dayOf, clock, log, unitsPerDay: budget.unitsPerDay },
      grants,
    ),
    store: createRuleStore({ redis, prefix, source }),
    leaveUnits: async () => unitsOfPolls(budget.unitsPerDay, await granted()),
    clock,
    log,
    metrics,
  })
  const poller = createPoller({
    source,
    prefix,
    redis,
    ledger,
    account,
    share: (units, dayShare) => unitsOfSource(config, sharing(source), units, dayShare),
    backlogShare: (units, dayShare) => unitsBesideFixed(config, sharing(source), units, dayShare),
    freshPauseMs: () => freshPauseMs(budget.requestsPerMinute, sharers(source)),
    planners: () => learnedBeside(config, sharing(source)),
    feed,
    rules,
    onRules(reading) {
      const silent = silentRules(reading.rules, (atMs) => isActiveAt(atMs, plan))
      tools.onRules(source, { ...reading, silent, ids: reading.rules.map(({ id }) => String(id)) })
      return silent
    },
    poll: (readPage, ending) => begin(runPoll({ ...walkDeps, readPage, ending }, walking)),
    sweep: (readPage, pagesMax, ending) =>
      begin(runSweep({ ...walkDeps, readPage, ending }, { ...walking, pagesMax })),
    async prepare() {
      processState.server = await readServerRun(redis, sourceKeys(prefix, source).meta)
      return tools.succeed(source)
    },
    onLease(taken) {
      lease = taken
    },
    onStandby: async () => {
      await refreshProcessState(state, processState)
      await ledger.used(dayOf(clock.now()))
    },
    createSchedule: (saved) => createSchedule(plan, saved),
    budgetDay: dayOf,
    limits: {
      unitsPerDay: plan.unitsPerDay,
      minIntervalMs: plan.minIntervalMs,
      // A fixed pace learns nothing from old pages.
      historyPages: poll.every === undefined ? poll.historyPages : 0,
      sweepShare: poll.sweepShare,
      rulesShare: poll.rulesShare,
    },
    tooManyWaiting,
    clock,
    log,
    metrics,
  })
  const context = contextOfSource(source, config, {
    ...tools,
    ledger,
    onExchange: countExchanges(metrics, source),
    budgetDay: dayOf,
  })
  const override = createSourceOverride({ redis, prefix, source })
  const shared = createSourceStatus({ redis, prefix, source })
  const scheduleState = createScheduleState({ redis, prefix, source, log })
  return {
    name: source,
    poller,
    rules,
    context,
    budgetDay: () => dayOf(clock.now()),
    tooThin: (ofAccount) =>
      budgetFindings(withUnits(config, unitsOfSource(config, sharing(source), ofAccount)), {
        alertsPerDay: 0,
      })
        .filter(({ severity }) => severity === 'warning')
        .map(({ text }) => text),
    status: () => currentStatus(poller.status(), lease, () => shared.loadBy(() => clock.now())),
    standby() {
      const { state, reason } = poller.status()
      return state === 'standby' ? reason : undefined
    },
    async counts() {
      const [{ facts }, counts] = await Promise.all([state.look([]), quarantined.counts()])
      return { ...counts, unrouted: facts.unrouted }
    },
    quarantine: {
      list: (limit) => quarantined.list(limit),
      find: (keys) => quarantined.find(keys),
      retry: (rows) =>
        retryQuarantined({ source, store: quarantined, intake: inForce.intake, clock, metrics }, rows),
      drop: (keys) => quarantined.remove(keys),
      dropAll: (throughMs) => quarantined.removeAll(throughMs),
      newestMs: () => quarantined.newestMs(),
      counts: () => quarantined.counts(),
    },
    hot: (untilMs) => override.setHot(untilMs, clock.now()),
    cool: (untilMs) => override.endHot(untilMs),
    day: createSourceDay({
      redis,
      config,
      clock,
      unitsPerDay,
      spender: { prefix, source, account },
      sharers: () => sharers(source),
      apiDay: async () => (await ledger.apiDay())?.day,
      learned: scheduleState,
    }),
    async seen(id) {
      const { marks, facts } = await state.look([String(id)])
      const { scope, forgottenMs, passedOver } = facts
      return {
        seen: marks[0] !== 'new',
        forgets: forgottenMs > 0,
        leavesOut: scope.kind !== 'all',
        leftOut: passedOver,
      }
    },
    learned: () => scheduleState.load(),
    unitsPerDay,
    unitsOfAccount: granted,
    resetsAt: async () => resetOf(plan, (await ledger.apiDay())?.day),
    pollOver: () => polling,
    async close() {
      closing.abort(new Error('closing'))
      await Promise.all([feed.close(), context.close()])
    },
  }
}

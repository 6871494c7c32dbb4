import { randomUUID } from 'node:crypto'
import type { OpenedWalk } from '../store/walk/walk-state.ts'
import type { Scope } from '../walk/scope.ts'
import type { PollDeps, PollOptions, ProcessState } from './poll-types.ts'

/**
 * Which rows count when a source has no stored walk yet. Decided before the first page is read and stored with the walk, so
 * that a first poll that is interrupted, or a restart after it, does not change it.
 *
 * A first start and a Redis that lost everything look alike; only a process that has read the stored walk can distinguish
 * them. It then handles what was fired since the last complete walk, and an hour before it: jobs that waited in the queues
 * were lost as well. Alerts of that hour may reach their sinks a second time, with the id of the first. For a process that
 * starts on an empty Redis, `startFrom` decides.
 */
const lossLookbackMs = 3_600_000

export async function openState(
  deps: PollDeps,
  options: PollOptions,
): Promise<{ opened: OpenedWalk; lost: boolean }> {
  const { processState } = options
  const scope =
    processState.known === null ? firstScope(options) : scopeAfterLoss(options, processState.known)
  const opened = await deps.state.open({ id: randomUUID(), scope, server: processState.server })
  if (opened.seenVanished) {
    const again = await deps.state.open({
      id: randomUUID(),
      scope: scopeAfterLoss(options, bounds(opened)),
      replaces: opened.id,
    })
    return report(deps, options, again, true)
  }
  const isKnown = [opened.id, ...opened.replacedIds].includes(processState.known?.id ?? opened.id)
  return report(deps, options, opened, !isKnown)
}

/** Keeps in this process what the next poll needs to notice a loss. */
export function noteState(processState: ProcessState, opened: Pick<OpenedWalk, 'id' | 'facts'>): void {
  const { lastCompleteMs, total, sinceMs, history } = bounds(opened)
  // After a second loss before the walk for the first one is complete, the walk goes back as far as for the first.
  processState.known = {
    id: opened.id,
    lastCompleteMs: lastCompleteMs ?? processState.known?.lastCompleteMs ?? null,
    total: total ?? processState.known?.total ?? null,
    sinceMs,
    history: history ?? processState.known?.history ?? null,
  }
}

/** How far back the walk after a loss of this stored walk may go. */
type Bounds = Omit<NonNullable<ProcessState['known']>, 'id'>

function bounds({ facts: { lastCompleteMs, total, scope } }: Pick<OpenedWalk, 'facts'>): Bounds {
  switch (scope.kind) {
    case 'all':
      return { lastCompleteMs, total, sinceMs: null, history: 0 }
    case 'since':
      return { lastCompleteMs, total, sinceMs: scope.sinceMs, history: null }
    case 'from':
      return { lastCompleteMs, total, sinceMs: scope.sinceMs, history: scope.beneath ?? scope.history }
    default:
      return scope satisfies never
  }
}

function firstScope({ startFrom, processState }: PollOptions): Scope {
  if (startFrom === 'beginning') return { kind: 'all' }
  if (startFrom === 'now') return { kind: 'from', sinceMs: processState.startedAtMs, history: null }
  return { kind: 'since', sinceMs: startFrom.sinceMs }
}

function scopeAfterLoss(options: PollOptions, known: Bounds): Scope {
  if (known.lastCompleteMs === null) return firstScope(options)
  const { startFrom } = options
  // What was passed over at the start is passed over again, however short ago that was.
  const sinceMs = Math.max(known.lastCompleteMs - lossLookbackMs, known.sinceMs ?? 0)
  const floorMs = typeof startFrom === 'string' ? sinceMs : Math.max(sinceMs, startFrom.sinceMs)
  const beneath = known.history === null ? {} : { beneath: known.history }
  return { kind: 'from', sinceMs: floorMs, history: known.total, ...beneath }
}

function report(
  { log, metrics }: PollDeps,
  { source, processState }: PollOptions,
  opened: OpenedWalk,
  lost: boolean,
): { opened: OpenedWalk; lost: boolean } {
  const scope = opened.facts.scope
  const since = scope.kind === 'all' ? 'the beginning' : new Date(scope.sinceMs).toISOString()
  if (lost) {
    metrics.stateLost.inc({ source })
    log.error({ source, since }, 'Redis has lost what was known of this source; walking again')
  } else if (opened.created) {
    log.info({ source, since }, 'nothing is known of this source yet; starting')
  }
  noteState(processState, opened)
  return { opened, lost }
}

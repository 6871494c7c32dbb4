import type { SourcePlanView } from '../admin/ports.ts'
import type { StatusView } from '../admin/status-view.ts'
import type { SourceConfig } from '../config/schema.ts'
import type { Daemon } from './daemon.ts'
import type { ContextCosts } from './plan-context.ts'

/** What one plan is drawn from. */
export interface SourcePlan {
  readonly name: string
  readonly source: Pick<SourceConfig, 'budget' | 'poll'>
  readonly learned: unknown
  /** What its routes cost for context; only a config says that. */
  readonly contextOf?: (plan: { unitsPerDay: number; alertsPerDay: number }) => ContextCosts | undefined
}

/** Those of a running bridge: it needs neither its config nor its Redis. */
export async function* plansOfBridge(daemon: Daemon, only: string | undefined): AsyncGenerator<SourcePlan> {
  const { sources } = (await daemon.get('/api/v1/status')) as StatusView
  for (const name of only === undefined ? sources.map((each) => each.name) : [only]) {
    const answer = await daemon.get(`/api/v1/sources/${encodeURIComponent(name)}/plan`)
    const { budget, poll, learned } = (answer as { data: SourcePlanView }).data
    yield { name, learned: learned ?? undefined, source: { budget, poll } as SourcePlan['source'] }
  }
}

import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The order of the test files. Vitest goes by how long each took the last time, which a fresh checkout does not know: so
 * those that take longest are named here, one that computes after some that wait. A name too many or too few costs time,
 * no more.
 */
const longest = [
  'faults/kill',
  'delivery/outage',
  'docker/package',
  'faults/cluster',
  'flow/life-cycle',
  'flow/operators',
  'schedule/announced',
  'flow/reload-notices',
  'faults/redis-refusals',
  'faults/replicas',
  'faults/redis',
  'faults/sinks',
  'flow/rolling-upgrade',
  'schedule/goals',
  'store/redis-topologies',
  'flow/stop',
  'faults/upstream',
  'delivery/batch',
  'setup',
  'cli/api',
  'config/bombs',
  'schedule/unfriendly',
  'flow/monitoring',
  'app/current-status',
  'store/redis-logins',
  'faults/truth',
  'delivery/crash',
  'delivery/worker',
  'delivery/swap',
  'context/source-context',
  'poller/granted-budget',
  'schedule/marks',
  'contract/sink',
  'poller/walk',
  'config/canary',
  'flow/backlog',
  'faults/clock',
  'poller/units',
  'delivery/stale-delays',
  'flow/context',
  'schedule/learned',
  'flow/granted-budget',
  'faults/rows',
  'helm/chart',
  'feed/client',
  'flow/orphans',
  'bench/soak',
  'delivery/breaker-lane',
  'flow/reload',
  'schedule/calendar',
  'model/walk',
  'sinks/http',
  'sinks/email/sink',
  'cli/long-request',
  'poller/trouble',
  'flow/verdict',
]

/** Files with a process of their own come first: the others then share processes to the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => alone(b) - alone(a) || rank(a) - rank(b))
  }
}

function alone({ project }: TestSpecification): number {
  return project.config.isolate ? 1 : 0
}

function rank({ moduleId }: TestSpecification): number {
  const index = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
  return index < 0 ? longest.length : index
}

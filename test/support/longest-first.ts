import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The order of the test files. Vitest goes by how long each took the last time, which a fresh checkout does not know: so
 * those that take longest are named here, one that computes after some that wait. A name too many or too few costs time,
 * no more.
 */
const longest = [
  'faults/kill',
  'docker/package',
  'schedule/goals',
  'faults/cluster',
  'faults/redis-refusals',
  'flow/life-cycle',
  'faults/replicas',
  'schedule/calendar',
  'faults/redis',
  'faults/upstream',
  'delivery/outage',
  'schedule/announced',
  'cli/api',
  'faults/sinks',
  'faults/truth',
  'delivery/worker',
  'schedule/learned',
  'flow/stop',
  'flow/rolling-upgrade',
  'config/bombs',
  'faults/clock',
  'flow/backlog',
  'delivery/crash',
  'schedule/unfriendly',
  'flow/monitoring',
  'store/redis-logins',
  'setup',
  'contract/sink',
  'schedule/marks',
  'flow/reload',
  'flow/orphans',
  'store/redis-topologies',
  'config/canary',
  'model/walk',
  'flow/operators',
  'helm/chart',
  'delivery/batch',
  'poller/walk',
  'context/source-context',
  'faults/rows',
  'delivery/stale-delays',
  'flow/granted-budget',
  'delivery/swap',
  'poller/trouble',
  'poller/units',
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

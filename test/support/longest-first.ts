import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The order of the test files. Vitest goes by how long each took the last time, which a fresh checkout does not know: so
 * those that take longest are named here, one that computes after some that wait. A name too many or too few costs time,
 * no more.
 */
const longest = [
  'faults/kill',
  'schedule/goals',
  'faults/cluster',
  'faults/redis-refusals',
  'flow/life-cycle',
  'schedule/unfriendly',
  'faults/redis',
  'flow/operators',
  'faults/replicas',
  'config/canary',
  'faults/upstream',
  'delivery/outage',
  'schedule/marks',
  'docker/dockerfile',
  'faults/sinks',
  'flow/stuck',
  'schedule/learned',
  'flow/stop',
  'flow/holding-back',
  'flow/backlog',
  'delivery/worker',
  'flow/reload',
  'model/walk',
  'delivery/batch',
  'delivery/stale-delays',
  'poller/walk',
  'poller/units',
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

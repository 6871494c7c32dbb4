import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The order of the test files. Vitest goes by how long each took the last time, which a fresh checkout does not know: so
 * those that take longest are named here. A name too many or too few costs time, no more.
 */
const longest = [
  // With a process of their own. Of the first five two start bridges: what Node.js keeps of their sources is not there yet.
  ...['faults/kill', 'docker/package', 'setup', 'config/canary', 'model/walk', 'flow/life-cycle'],
  ...['faults/cluster', 'faults/replicas', 'faults/redis', 'faults/sinks', 'flow/stop'],
  ...['flow/rolling-upgrade', 'delivery/crash', 'contract/sink', 'faults/clock', 'readme', 'faults/log'],
  'cli/daemon',
  // Most of the others wait for most of their time: what computes is spread among them.
  ...['delivery/outage', 'schedule/announced', 'flow/backlog', 'context/source-context', 'flow/operators'],
  ...['poller/granted-budget', 'delivery/breaker-lane', 'schedule/goals', 'store/redis-topologies'],
  ...['flow/monitoring', 'flow/reload-notices', 'faults/redis-refusals', 'schedule/marks', 'poller/walk'],
  ...['app/current-status', 'store/redis-logins', 'delivery/batch', 'helm/chart', 'delivery/worker'],
  ...['delivery/swap', 'faults/upstream', 'poller/units', 'schedule/unfriendly', 'cli/api', 'store/ledger'],
  ...['faults/truth', 'delivery/stale-delays', 'flow/context', 'admin/actions', 'flow/granted-budget'],
  ...['config/bombs', 'faults/rows', 'feed/client', 'flow/orphans', 'bench/soak', 'flow/reload'],
  ...['schedule/learned', 'sinks/http', 'sinks/email/sink', 'cli/long-request', 'poller/trouble'],
  ...['schedule/calendar', 'flow/verdict', 'admin/page/page', 'app/operators', 'schedule/forecast'],
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

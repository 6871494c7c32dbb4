import { slowestPaces } from '../../config/checks/accounts.ts'
import type { SourceConfig } from '../../config/schema.ts'
import { createSourceContext, type SourceContext } from '../../context/source-context.ts'
import { createSpending } from '../../context/spending.ts'
import { createFeedClient } from '../../feed/client.ts'
import { budgetTeacher } from '../../poller/budget.ts'
import { foreignFeed } from '../../poller/leader.ts'
import { type ContextCache, createContextCache } from '../../store/context-cache.ts'
import { createGrantStore } from '../../store/ledger/grant.ts'
import type { Ledger } from '../../store/ledger/ledger.ts'
import { hashAccount } from '../../store/source/source-data.ts'
import { createSourceStatus } from '../../store/source/source-status.ts'
import type { RuntimeTools } from '../tools.ts'

interface ContextTools extends Omit<RuntimeTools, 'drawer'> {
  readonly prefix: string
  readonly ledger: Ledger
  readonly onExchange: NonNullable<Parameters<typeof createFeedClient>[0]['onExchange']>
  /** The sources of the config in force that spend from the ledger of this one. */
  readonly sharing: (source: string) => readonly SourceConfig[]
  readonly budgetDay: Parameters<typeof createSpending>[0]['budgetDay']
}

/** Its own client: a context call that hangs takes no connection from the polls. */
export function contextOfSource(
  source: string,
  config: SourceConfig,
  { prefix, redis: { commands: redis }, ledger, onExchange, sharing, budgetDay, ...tools }: ContextTools,
): SourceContext & { close(): Promise<void> } {
  const { clock, log, metrics } = tools
  const { baseUrl, token, account, budget, context } = config
  const closing = new AbortController()
  const feed = createFeedClient({
    source,
    baseUrl,
    token,
    clock,
    onExchange,
    connections,
    bodyBytesMax,
    exactNumbersMax,
    timeoutMs: Math.max(callTimeoutMs, context.deadline),
  })
  const grants = createGrantStore({ redis, prefix, source, account })
  const { unitsPerDay } = budget
  const spending = createSpending({
    source,
    ledger,
    budgetDay,
    clock,
    metrics,
    grants,
    unitsPerDay,
    onBudgetRefused: budgetTeacher({ source, ledger, budgetDay, clock, log, unitsPerDay }, grants),
    unitsShare: context.unitsShare,
    polls: () => slowestPaces(sharing(source)),
  })
  const status = createSourceStatus({ redis, prefix, source })
  let known:
    | { readonly token: string; readonly accountHash: string; readonly cache: ContextCache }
    | undefined
  const cacheNow = () => {
    const token = tokenOf(config)
    if (token !== undefined && known?.token !== token) {
      const accountHash = hashAccount(prefix, config.baseUrl, token)
      const cache = createContextCache({ redis, prefix, source, account, accountHash })
      known = { token, accountHash, cache }
    }
    return token === undefined ? undefined : known
  }
  const found = createSourceContext({
    source,
    feed,
    cacheNow,
    spending,
    async isForeign() {
      // Of the process that polls, which may be another one.
      const { state, reason } = (await status.load()) ?? {}
      return state === 'stopped' && reason === foreignFeed
    },
    clock,
    log,
    metrics,
    names: context.names,
    deadlineMs: context.deadline,
    closing: closing.signal,
  })
  return {
    find: found.find.bind(found),
    async close() {
      closing.abort(new Error('closing'))
      await feed.close()
    },
  }
}

/** More than all names together use at once: where one endpoint hangs, calls of the others need no place of its calls. */
const connections = 100
/** A call that nobody waits for any more still ends: its value is kept for the next alert. */
const callTimeoutMs = 8_000
/**
 * A hundred rows of ten KB, or one record whose Persian text is all escaped. Nothing else runs while an answer is read, and twenty
 * may come at the same time: at most 0.05 s each with these limits, where 50,000 numbers as 1.10 took 0.2 s. A record has the lower
 * limit because it is parsed, stored and sent again for each alert.
 */
const bodyBytesMax = 1_048_576
const exactNumbersMax = { page: 15_000, record: 5_000 }

function tokenOf({ token }: SourceConfig): string | undefined {
  try {
    return token.reveal()
  } catch {
    return undefined
  }
}

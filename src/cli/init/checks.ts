import { createFeedClient } from '../../feed/client.ts'
import { FeedError } from '../../feed/errors.ts'
import type { Secret } from '../../lib/secret.ts'

/** What one call of the feed says of an address and its token. */
export interface TokenCheck {
  readonly ok: boolean
  readonly text: string
  readonly alerts?: number
  readonly newest?: string
}

/** Reads one page of the feed, which costs a unit. It is counted by the API; the bridge's own count begins with its first poll. */
export async function checkToken(baseUrl: string, token: Secret): Promise<TokenCheck> {
  const feed = createFeedClient({ source: 'main', baseUrl, token })
  try {
    const { total, rows } = await feed.deliveries(1)
    const newest = rows.find((row) => row.ok)?.alert.firedAt
    return {
      ok: true,
      text: `the token works (1 unit): ${total} alerts so far${newest === undefined ? '' : `, the newest of ${newest}`}`,
      alerts: total,
      ...(newest === undefined ? {} : { newest }),
    }
  } catch (thrown) {
    if (!(thrown instanceof FeedError)) throw thrown
    // An API that asks to wait has recognised the token.
    if (thrown.code === 'rate_limited')
      return { ok: true, text: `the token is known, but has nothing left for now: ${thrown.message}` }
    return { ok: false, text: thrown.message }
  } finally {
    await feed.close()
  }
}

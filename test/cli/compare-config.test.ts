import { expect, it } from 'vitest'
import type { StoredAlert } from '../../src/admin/views/delivery-view.ts'
import { sampleAlert } from '../../src/alert/sample.ts'
import { compareConfig } from '../../src/cli/compare-config.ts'
import { UserError } from '../../src/lib/errors.ts'
import { configOf } from '../support/app.ts'
import { bridgeConfig } from '../support/bridge.ts'

it('a config whose patterns take too long on the alerts of before is said to, within its limit', async () => {
  const pattern = `{ regex: "(?:a|b)*a[ab]{590}[zw]" }`
  const config = configOf(
    bridgeConfig({
      redis: { url: 'embedded' },
      feed: 'http://127.0.0.1:1',
      sinks: { hook: 'http://127.0.0.1:1' },
      routes: `[{ match: { headline: [${pattern}] }, sinks: [hook] }]`,
    }),
  )
  const row = { ...sampleAlert(0).row, headline: 'ab'.repeat(1_000) }
  const alert: StoredAlert = {
    source: 'main',
    id: 1,
    seenAt: new Date(0).toISOString(),
    row,
    sent: [],
    held: [],
  }
  const compared = compareConfig(Array<StoredAlert>(1_000).fill(alert), config, () => undefined, 100)
  await expect(compared).rejects.toThrow(UserError)
  await expect(compared).rejects.toThrow(
    'To compare the alerts of this span takes longer than 100ms: a shorter span is needed, or fewer or simpler patterns.',
  )
})

import type { Purpose } from '../telemetry/metrics.ts'

/** What units are spent for, in words for people. */
export const purposeWords: Readonly<Record<Purpose | 'unknown', string>> = {
  poll: 'polls',
  walk: 'catching up',
  sweep: 'late rows',
  history: 'history',
  rules: 'rules',
  context: 'context',
  api: 'api',
  unknown: 'not known',
}

import { type Clock, systemClock } from '../lib/clock.ts'
import { type Announcement, createEvaluations } from './evaluations.ts'
import { createGenerator, type Generator } from './generator.ts'
import { nextMidnight, type ResetZone } from './limits.ts'
import type { SandboxToken } from './server/decide-call.ts'

export interface SandboxOptions {
  /** 0: a free one. */
  readonly port?: number
  /** Opens the control port, always on loopback; 0: a free one. */
  readonly controlPort?: number
  /** A path before `/api/v1`, as behind a gateway: `/market`. */
  readonly pathPrefix?: string
  /** The tokens of the account; by default one, `sandbox-token`, with every scope. */
  readonly tokens?: readonly SandboxToken[]
  /** Whether the account's tier includes API access. */
  readonly hasPlan?: boolean
  /** Alerts that fire by themselves; 0 (the default) is none. */
  readonly ratePerMinute?: number
  readonly spacing?: 'poisson' | 'even'
  /** The rules are evaluated, announced in this way, and fire alerts too; left out: they are never evaluated. */
  readonly evaluations?: Announcement
  /** The number of rows at the start. */
  readonly history?: number
  /** `shuffled`: ids are unique, but do not grow with time. */
  readonly ids?: 'increasing' | 'shuffled'
  readonly firstId?: number
  readonly unitsPerDay?: number
  /** When the day's budget is reset: midnight of a zone, or the first reset after an instant. */
  readonly resets?: ResetZone | ((nowMs: number) => number)
  readonly requestsPerMinute?: number
  readonly minuteWindow?: 'sliding' | 'fixed'
  readonly seed?: number
  readonly clock?: Clock
  /** Makes the rows; by default the synthetic Tehran market. */
  readonly generator?: Generator
}

export const sandboxToken = 'sandbox-token'

export type Settings = ReturnType<typeof withDefaults>

export function withDefaults(options: SandboxOptions) {
  const { resets = 'Asia/Tehran', seed = 1, evaluations } = options
  const generator = options.generator ?? createGenerator(seed)
  return {
    port: options.port ?? 0,
    controlPort: options.controlPort,
    pathPrefix: options.pathPrefix ?? '',
    tokens: options.tokens ?? [{ value: sandboxToken }],
    hasPlan: options.hasPlan ?? true,
    ratePerMinute: options.ratePerMinute ?? 0,
    spacing: options.spacing ?? 'poisson',
    history: options.history ?? 0,
    ids: options.ids ?? 'increasing',
    firstId: options.firstId ?? 1,
    seed,
    clock: options.clock ?? systemClock,
    generator,
    evaluations:
      evaluations === undefined ? undefined : createEvaluations(generator.rules, evaluations, seed),
    limits: {
      requestsPerMinute: options.requestsPerMinute ?? 240,
      minuteWindow: options.minuteWindow ?? 'sliding',
      unitsPerDay: options.unitsPerDay ?? Number.POSITIVE_INFINITY,
      nextReset: typeof resets === 'string' ? (nowMs: number) => nextMidnight(resets, nowMs) : resets,
    },
  } as const
}

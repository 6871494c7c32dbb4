import type { Scene } from './data/scene.ts'
import { isInScreen } from './data/screener.ts'
import { shownOf } from './data/shown.ts'
import { type Listing, type Screen, screens, watched } from './market.ts'
import { createRandom, type Random } from './random.ts'
import { type ApiDelivery, type ApiRule, isoSeconds } from './rows.ts'
import { type AlertKind, alertText, type Subject } from './texts.ts'

/** Makes rows that look like an account's alerts. Every alert fits one of the account's alert rules. */
export interface Generator {
  /** Newest first. */
  readonly rules: readonly ApiRule[]
  /** Row `id`, fired at `firedAtMs` (ms since the epoch), by `ruleId` where one is given. */
  alert(id: number, firedAtMs: number, ruleId?: number): ApiDelivery
}

interface Watch {
  readonly ruleId: number
  readonly on:
    | { readonly kind: Exclude<AlertKind, 'screen'>; readonly instrument: Listing }
    | { readonly kind: 'screen'; readonly screen: Screen }
}

export function createGenerator(seed: number): Generator {
  const random = createRandom(seed)
  const watches = makeWatches()
  return {
    rules: watches.map(toRule).reverse(),
    alert(id, firedAtMs, ruleId) {
      const watch = watches.find((each) => each.ruleId === ruleId) ?? random.pick(watches)
      const scene = { seed, nowMs: firedAtMs }
      const subject = toSubject(watch, scene, random)
      const { instrument } = subject
      return {
        id,
        kind: subject.kind,
        symbol: instrument?.symbol ?? null,
        slug: instrument?.slug ?? null,
        ...alertText(subject, (of) => shownOf(of, scene), random),
        url: `https://market.example.com/${instrument ? `instruments/${instrument.slug}` : 'screens'}?alert=${id}`,
        ruleIds: ruleIds(watch, watches, random),
        firedAt: isoSeconds(firedAtMs),
        notifiedAt: random.next() < 0.8 ? isoSeconds(firedAtMs + 1_000 * (1 + random.int(4))) : null,
        channels: random.pick([['push'], ['push', 'email'], ['telegram']]),
        isRead: false,
      }
    },
  }
}

/** An instrument that entered a screen is one that the screener shows in it, too. */
function toSubject({ on }: Watch, scene: Scene, random: Random): Subject {
  if (on.kind !== 'screen') return on
  if (random.next() >= 0.7) return { ...on, instrument: null }
  const [first, ...more] = watched.filter((each) => isInScreen(on.screen.id, each, scene))
  return { ...on, instrument: first === undefined ? null : random.pick([first, ...more]) }
}

/** The rule that fired and, now and then, another one that watches the same instrument. */
function ruleIds({ ruleId, on }: Watch, watches: readonly Watch[], random: Random): readonly string[] {
  const other = watches.find(
    (each) =>
      on.kind !== 'screen' &&
      each.on.kind !== 'screen' &&
      each.on.instrument === on.instrument &&
      each.ruleId !== ruleId,
  )
  return [ruleId, ...(other && random.next() < 0.15 ? [other.ruleId] : [])].map(String)
}

/** Two kinds of rule for each instrument, and one for each screen. Only companies publish letters. */
function makeWatches(): [Watch, ...Watch[]] {
  const [first] = watched
  const each = watched.flatMap((instrument, index): Watch[] => {
    const others = (['volume', 'indicator', 'filing'] as const).slice(
      0,
      instrument.group === 'equity' ? 3 : 2,
    )
    return [
      { ruleId: 11 + index * 2, on: { kind: 'price', instrument } },
      { ruleId: 12 + index * 2, on: { kind: others[index % others.length] ?? 'volume', instrument } },
    ]
  })
  const market = screens.map((screen): Watch => ({ ruleId: screen.id + 40, on: { kind: 'screen', screen } }))
  return [{ ruleId: 10, on: { kind: 'indicator', instrument: first } }, ...each, ...market]
}

function toRule({ ruleId, on }: Watch): ApiRule {
  const screen = on.kind === 'screen' ? on.screen : null
  const instrument = on.kind === 'screen' ? null : on.instrument
  return {
    id: ruleId,
    kind: on.kind,
    name: screen ? `غربال ${screen.name}` : `${instrument?.persian} — ${on.kind}`,
    instrumentId: instrument?.id ?? null,
    symbol: instrument?.symbol ?? null,
    slug: instrument?.slug ?? null,
    screenId: screen?.id ?? null,
    screen: screen?.name ?? null,
    config: on.kind === 'price' ? [`level=${on.instrument.price}`] : [],
    channels: ['push'],
    isActive: true,
    disabledReason: null,
    lastEvaluatedAt: null,
    nextEvaluationAt: null,
    lastFiredAt: null,
    isArmed: true,
    mine: true,
    isPrivate: true,
    owner: null,
    unit: instrument?.unit ?? null,
  }
}

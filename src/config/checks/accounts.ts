import * as z from 'zod'
import { property } from '../../alert/json/json.ts'
import { formatDuration } from '../../lib/duration.ts'
import type { Secret } from '../../lib/secret.ts'
import type { Complaint } from '../mistakes/explain.ts'
import type { Config, SourceConfig } from '../schema.ts'
import { budgetSchema } from '../source.ts'

/**
 * Sources of one account. The API counts units and requests per account, so sources that share an account must share one
 * ledger. Sources with the same `account` do.
 */

/** The sources that share the ledger of this one, itself included; none where there is no such source. */
export function sharingWith(sources: Config['sources'], name: string): readonly SourceConfig[] {
  const own = sources[name]
  if (own?.account === undefined) return own === undefined ? [] : [own]
  return Object.values(sources).filter(({ account }) => account === own.account)
}

/** How many they are. */
export function sharersOf(sources: Config['sources'], name: string): number {
  return Math.max(1, sharingWith(sources, name).length)
}

interface Paced {
  readonly poll: Pick<SourceConfig['poll'], 'every'>
}

/** How many polls a day these sources make where `poll.every` fixes their pace. */
function fixedPolls(sharing: readonly Paced[]): number {
  return sharing.flatMap(({ poll: { every } }) => every ?? []).reduce((sum, every) => sum + dayMs / every, 0)
}

/**
 * Of the units that an account has for this share of a day, those that the plan of one of its sources may use. Where its pace is
 * learned: an equal part of what the fixed paces of others need not until its end; where they need nearly all, a twentieth of an
 * equal part of all. Where its pace is fixed: what those of the others leave, or its share of a need that is larger than the units.
 */
export function unitsOfSource(
  { poll: { every } }: Paced,
  sharing: readonly Paced[],
  units: number,
  dayShare = 1,
): number {
  if (every === undefined) return learnedUnits(sharing, units, dayShare)
  const own = (dayMs / every) * dayShare
  const all = Math.max(own, fixedPolls(sharing) * dayShare)
  return Math.ceil(all > units ? units * (own / all) : units - (all - own))
}

/** Those that a backlog of one of its sources may take half of: learned paces adapt to what is left, fixed ones do not. */
export function unitsBesideFixed(own: Paced, sharing: readonly Paced[], units: number, dayShare = 1): number {
  const fixed = sharing.filter(({ poll: { every } }) => every !== undefined)
  return unitsOfSource(own, fixed, units, dayShare)
}

function learnedUnits(sharing: readonly Paced[], units: number, dayShare: number): number {
  const rest = (units - fixedPolls(sharing) * dayShare) / Math.max(1, learnedPaces(sharing))
  return Math.ceil(Math.max(rest, (units * learnedShareMin) / Math.max(1, sharing.length)))
}

/** How many of these sources have a learned pace. */
function learnedPaces(sharing: readonly Paced[]): number {
  return sharing.filter(({ poll: { every } }) => every === undefined).length
}

/** How many of the sources that share an account have units of this one in their part: a fixed pace leaves its rest to learned ones. */
export function learnedBeside({ poll: { every } }: Paced, sharing: readonly Paced[]): number {
  return every === undefined ? 0 : learnedPaces(sharing)
}

/** The slowest pace of one source: a share of its part of the units, or the interval where its pace is fixed. */
export type SlowestPace = { readonly share: number } | { readonly everyMs: number }

export function slowestPaces(sharing: readonly SourceConfig[]): SlowestPace[] {
  return sharing.map(({ poll: { every, floor } }) =>
    every === undefined ? { share: floor } : { everyMs: every },
  )
}

/** The least that polls take of so many units of an account, in a day of this length. */
export function slowestPolls(paces: readonly SlowestPace[], units: number, lengthMs = dayMs): number {
  const fixed = paces.reduce((sum, pace) => sum + ('everyMs' in pace ? lengthMs / pace.everyMs : 0), 0)
  const shares = paces.flatMap((pace) => ('share' in pace ? pace.share : []))
  const part = Math.max(0, units - fixed) / Math.max(1, shares.length)
  return fixed + shares.reduce((sum, share) => sum + share * part, 0)
}

/** Units of a day that context leaves to polls beside those of their slowest pace, where `share` falls as the day ends. */
export const contextLeaves = { share: 0.1, units: 3 }

/**
 * The units of a day that context can ever use beside the polls of an account. A learned pace plans to use all that is left, so that
 * what context leaves to polls at the start of a day it leaves to them all day long; a fixed one leaves it what is kept at the end.
 */
export function contextBesidePolls(sharing: readonly SourceConfig[], units: number): number {
  const paces = slowestPaces(sharing)
  const isFixed = learnedPaces(sharing) === 0
  const kept = (isFixed ? endLeavesMin : units * contextLeaves.share) + contextLeaves.units
  return Math.max(0, units - Math.ceil(slowestPolls(paces, units) + kept))
}

/** Of the share of `contextLeaves` a part is left until the end, and units are counted whole. */
const endLeavesMin = 1

const learnedShareMin = 0.05
const dayMs = 86_400_000
const minutesOfDay = 1_440

/** A ledger counts against one budget, so all sources of an account must have the same budget. */
export function accountComplaints(config: unknown): Complaint[] {
  const sources = Object.entries(property(config, 'sources') ?? {})
  const first = new Map<unknown, { readonly name: string; readonly budget: object }>()
  return sources.flatMap(([name, source]): Complaint[] => {
    const account = property(source, 'account')
    const parsed = z.safeParse(budgetSchema, property(source, 'budget') ?? {})
    if (typeof account !== 'string' || !parsed.success) return []
    const budget = parsed.data
    const other = first.get(account)
    if (other === undefined) {
      first.set(account, { name, budget })
      return []
    }
    const differs = Object.keys(budget).filter((key) => property(budget, key) !== property(other.budget, key))
    return differs.map((key) => ({
      path: ['sources', name, 'budget', key],
      message: `${other.name} is of the same account and says ${String(property(other.budget, key))}`,
      remedy: 'sources of one account share one budget: say the same in each',
      bare: true,
    }))
  })
}

/**
 * Fixed paces of an account that are each affordable and together are not: a day's polls or a minute's. What one of them asks for by
 * itself is told of that source.
 */
export function overcommittedPaces({ sources }: Config): Complaint[] {
  const fixed = Object.entries(sources).filter(([, { poll }]) => poll.every !== undefined)
  const accounts = Map.groupBy(fixed, ([name, { account }]) => account ?? { name })
  return [...accounts.values()].flatMap((own): Complaint[] => {
    const [name, last] = own.at(-1) ?? []
    if (name === undefined || last === undefined || own.length === 1) return []
    const { unitsPerDay, requestsPerMinute } = last.budget
    const most = Math.max(...own.map(([, source]) => fixedPolls([source])))
    const polls = fixedPolls(own.map(([, source]) => source))
    const others = own.slice(0, -1).map(([other]) => other)
    const path = ['sources', name, 'poll', 'every']
    const together = `with the fixed paces of ${others.join(', ')}, this account makes`
    const [requests, mostRequests] = [polls / minutesOfDay, most / minutesOfDay]
    if (requests > requestsPerMinute && mostRequests <= requestsPerMinute) {
      const message = `${together} ${Math.ceil(requests)} requests a minute, and requestsPerMinute is ${requestsPerMinute}: polls will wait for it`
      return [{ path, message, remedy: 'raise poll.every in its account', bare: true }]
    }
    if (polls <= unitsPerDay || most > unitsPerDay) return []
    const spent = `they are spent after ${formatDuration((unitsPerDay / polls) * dayMs)}`
    const message = `${together} ${Math.ceil(polls)} polls a day, and unitsPerDay is ${unitsPerDay}: ${spent}`
    return [{ path, message, remedy: 'raise poll.every in its account, or raise unitsPerDay', bare: true }]
  })
}

/** Two sources with the same token but without the same `account` would each spend the whole budget. */
export function sharedTokens({ sources }: Config): Complaint[] {
  const first = new Map<string, string>()
  return Object.entries(sources).flatMap(([name, { baseUrl, token, account }]): Complaint[] => {
    const value = revealed(token)
    if (value === undefined) return []
    const credential = `${baseUrl} ${value}`
    const other = first.get(credential)
    if (other === undefined) {
      first.set(credential, name)
      return []
    }
    const theirs = sources[other]?.account
    if (theirs !== undefined && theirs === account) return []
    return [
      {
        path: ['sources', name, token.file === undefined ? 'token' : 'tokenFile'],
        message: `${other} has the same token, so both would spend the whole budget of one account`,
        remedy: 'give both the same account: NAME, and they share it',
        bare: true,
      },
    ]
  })
}

/** Undefined while its file cannot be read. */
function revealed(secret: Secret): string | undefined {
  try {
    return secret.reveal()
  } catch {
    return undefined
  }
}

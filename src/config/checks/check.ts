import * as z from 'zod'
import { isMapping, property } from '../../alert/json/json.ts'
import { patternSizeIn, sizeWords } from '../../alert/match/match-form.ts'
import type { Complaint } from '../mistakes/explain.ts'
import { mistakesMax } from '../mistakes/mistake.ts'
import { nearest } from '../mistakes/nearest.ts'
import { redisModeProblems } from '../redis.ts'
import { budgetSchema, pollSchema } from '../source.ts'
import { accountComplaints } from './accounts.ts'
import { type IntervalProblem, intervalProblems } from './intervals.ts'

/**
 * Checks that the schema of one field cannot make: names that must exist elsewhere, and a pace that must fit its budget.
 * They also run on a value that the schema refuses, so that their mistakes are reported together with all others.
 */
export function checkAcross(config: unknown): Complaint[] {
  const sources = property(config, 'sources')
  return [
    ...redisComplaints(config),
    ...intervalComplaints(sources, 'mistake'),
    ...accountComplaints(config),
    ...routeComplaints(config),
    ...patternComplaints(config),
    ...operatorComplaints(config),
  ]
}

/** Of all routes together: every alert is compared with every one. A thousand globs of twenty characters are a fifth. */
const routePatternSizeMax = 100_000

function patternComplaints(config: unknown): Complaint[] {
  const found = patternSizeIn(property(config, 'routes'))
  if (found <= routePatternSizeMax) return []
  const remedy = 'name values without glob and regex'
  return [
    {
      path: ['routes'],
      message: `expected ${sizeWords(routePatternSizeMax)}, found ${found}`,
      remedy,
      bare: true,
    },
  ]
}

function redisComplaints(config: unknown): Complaint[] {
  const problems = redisModeProblems(property(config, 'redis'))
  return problems.map(({ key, message }) => ({ path: ['redis', key], message }))
}

export function intervalComplaints(sources: unknown, wanted: IntervalProblem['severity']): Complaint[] {
  return keysIn(sources).flatMap((name) => {
    const source = property(sources, name)
    const budget = z.safeParse(budgetSchema, property(source, 'budget') ?? {})
    const poll = z.safeParse(pollSchema, property(source, 'poll') ?? {})
    if (!budget.success || !poll.success) return []
    const problems = intervalProblems(budget.data, poll.data).filter(({ severity }) => severity === wanted)
    return problems.map(({ key, message, remedy }) => {
      return { path: ['sources', name, 'poll', key], message, remedy }
    })
  })
}

function routeComplaints(config: unknown): Complaint[] {
  const sinks = keysIn(property(config, 'sinks'))
  const sources = keysIn(property(config, 'sources'))
  return listIn(property(config, 'routes')).flatMap((route, index) => {
    const wanted = property(property(route, 'match'), 'source')
    const sourcePath = ['routes', index, 'match', 'source']
    return [
      ...unknownNames(property(route, 'sinks'), sinks, 'sink', ['routes', index, 'sinks']),
      ...unknownNames(wanted, sources, 'source', sourcePath),
    ]
  })
}

function operatorComplaints(config: unknown): Complaint[] {
  return unknownNames(property(config, 'operators'), keysIn(property(config, 'sinks')), 'sink', ['operators'])
}

/** Complaints about the names in `given`, a name or a list of them, that are not among `known`. */
function unknownNames(
  given: unknown,
  known: readonly string[],
  noun: string,
  path: PropertyKey[],
): Complaint[] {
  // When there are none at all, the schema reports that already.
  if (known.length === 0) return []
  const names: [unknown, PropertyKey[]][] = Array.isArray(given)
    ? given.map((name, index) => [name, [...path, index]])
    : [[given, path]]
  const there = new Set(known)
  const unknown = names.flatMap(([name, at]) => {
    return typeof name !== 'string' || there.has(name) ? [] : [{ name, at }]
  })
  return unknown.slice(0, mistakesMax + 1).map(({ name, at }, index) => {
    const near = index < comparedMax ? nearest(name, known) : undefined
    const remedy = near === undefined ? `there is ${listed(known)}` : `did you mean ${near}?`
    return { path: at, message: `there is no ${noun} of this name`, remedy }
  })
}

/** Finding the nearest of a thousand names takes milliseconds. */
const comparedMax = 20
const listedMax = 20

function listed(names: readonly string[]): string {
  const more = names.length > listedMax ? ` and ${names.length - listedMax} more` : ''
  return `${names.slice(0, listedMax).join(', ')}${more}`
}

function keysIn(value: unknown): string[] {
  return isMapping(value) ? Object.keys(value) : []
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

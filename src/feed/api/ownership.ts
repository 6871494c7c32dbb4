import * as z from 'zod'
import { isObject, property } from '../../alert/json/json.ts'

/**
 * Who owns an instrument, who directs it and what it owns. `data` is one such record or a list of them; which of the two
 * comes when is not documented.
 */
const text = z.string()
const textOrNull = z.string().nullish()
const numberOrNull = z.number().nullish()
const listed = { listedSymbol: textOrNull, listedSlug: textOrNull }

const holder = z.looseObject({
  entityId: z.int(),
  name: text,
  kind: text,
  percent: numberOrNull,
  shareCount: z.int().nullish(),
  asOf: text,
  ...listed,
})

const boardMember = z.looseObject({
  entityId: z.int(),
  name: text,
  role: text,
  isExecutive: z.boolean().nullish(),
  representative: textOrNull,
  termStart: text,
  termEndedAt: textOrNull,
  sourceUrl: textOrNull,
})

const summary = z.looseObject({
  asOf: textOrNull,
  holders: z.array(holder),
  registeredPercent: z.number(),
  strategicPercent: z.number(),
  board: z.array(boardMember),
})

const historyEntry = z.looseObject({
  entityId: z.int(),
  name: text,
  asOf: text,
  percent: numberOrNull,
  previousPercent: numberOrNull,
  deltaPoints: numberOrNull,
  isEntry: z.boolean(),
  isExit: z.boolean(),
})

interface OwnershipNode {
  readonly entityId: number
  readonly name: string
  readonly percent?: number | null | undefined
  readonly effectivePercent?: number | null | undefined
  readonly end?: string | null | undefined
  readonly listedSymbol?: string | null | undefined
  readonly listedSlug?: string | null | undefined
  readonly children: readonly OwnershipNode[]
  readonly [field: string]: unknown
}

const treeNode: z.ZodType<OwnershipNode> = z.looseObject({
  entityId: z.int(),
  name: text,
  percent: numberOrNull,
  effectivePercent: numberOrNull,
  end: textOrNull,
  ...listed,
  get children() {
    return z.array(treeNode)
  },
})

const lookThroughEntry = z.looseObject({
  entityId: z.int(),
  name: text,
  kind: text,
  effectivePercent: z.number(),
  paths: z.int(),
  truncated: z.boolean(),
  ...listed,
})

const interlock = z.looseObject({ symbol: text, slug: textOrNull, shared: z.array(text) })

const conflict = z.looseObject({
  entityId: z.int(),
  name: text,
  parentSymbol: text,
  parentSlug: textOrNull,
  percentOfParent: numberOrNull,
  parentPercentOfInstrument: numberOrNull,
})

const profitImpact = z.looseObject({
  symbol: text,
  slug: textOrNull,
  name: text,
  percent: z.number(),
  netProfit: numberOrNull,
  attributable: numberOrNull,
  periodEnd: textOrNull,
  basis: textOrNull,
  sourceUrl: textOrNull,
})

const one = z.looseObject({
  summary,
  freeFloatPercent: numberOrNull,
  floatGapPoints: numberOrNull,
  history: z.array(historyEntry),
  tree: z.array(treeNode),
  chains: z.int(),
  treeTruncated: z.boolean(),
  lookThrough: z.array(lookThroughEntry),
  interlocks: z.array(interlock),
  conflicts: z.array(conflict),
  profitImpact: z.array(profitImpact),
})

export const ownership = z.looseObject({
  data: z.union([one, z.array(one)]),
  meta: z.looseObject({}).optional(),
})

/** Levels of a tree that are kept: chains of companies are short, and code that reads a tree recurses. */
export const treeLevelsMax = 32

/**
 * Cuts, in place, what is deeper than `treeLevelsMax` from the trees of an ownership answer, and sets the record's own
 * `treeTruncated`. Iterative, since JSON may nest deeper than recursion can go.
 */
export function cutTrees(body: unknown): void {
  const data = property(body, 'data')
  for (const each of Array.isArray(data) ? data : [data]) {
    let level: readonly unknown[] = listOf(each, 'tree')
    for (let depth = 1; level.length > 0; depth += 1) {
      const inner = level.flatMap((node) => listOf(node, 'children'))
      if (depth >= treeLevelsMax && inner.length > 0) {
        for (const node of level) if (isObject(node)) Reflect.set(node, 'children', [])
        if (isObject(each)) Reflect.set(each, 'treeTruncated', true)
        break
      }
      level = inner
    }
  }
}

function listOf(value: unknown, name: string): readonly unknown[] {
  const found = property(value, name)
  return Array.isArray(found) ? found : []
}

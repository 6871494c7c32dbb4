import { formatCount } from '../../admin/page/words/en.ts'
import { UserError } from '../../lib/errors.ts'
import { oddAnswerText } from './answered.ts'
import type { Daemon } from './daemon.ts'

interface Listed<T> {
  readonly data: T[]
  /** A line such as `50 of 131`, where not all are listed. */
  readonly more: readonly string[]
}

/** Reads a list of the API page by page, up to `wanted` rows. */
export async function listPages<T>(
  daemon: Daemon,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  wanted = Number.POSITIVE_INFINITY,
): Promise<Listed<T>> {
  const data: T[] = []
  for (let cursor: string | undefined; ; ) {
    const limit = String(Math.min(pageMax, wanted - data.length))
    const page = checkedPage<ListPage<T>>(await daemon.get(path, { ...query, limit, cursor }), cursor)
    data.push(...page.data)
    if (!page.cursor) return { data, more: [] }
    if (data.length >= wanted) return { data, more: [cutText(data.length, page.total)] }
    cursor = page.cursor
  }
}

/** `50 of 131; --limit shows more`. */
function cutText(shown: number, total: number | undefined): string {
  const part =
    total === undefined
      ? `the newest ${formatCount(shown)}`
      : `${formatCount(shown)} of ${formatCount(total)}`
  return `${part}; --limit shows more`
}

/** A page of a list, as the API answers. */
export interface ListPage<T> {
  readonly data: readonly T[]
  /** Absent where it is not known, and from an earlier version. */
  readonly total?: number
  readonly cursor?: string | null
}

/** What says that it is a bridge may be none, or of another version: a cursor that comes back would be asked for ever. */
export function checkedPage<P extends ListPage<unknown>>(answer: unknown, before: string | undefined): P {
  const { data, cursor } = { ...(answer as Partial<P> | null) }
  if (Array.isArray(data) && (!cursor || cursor !== before)) return answer as P
  throw new UserError(oddAnswerText())
}

/** What the API gives at once, at most. */
export const pageMax = 500
/** What a command shows without being asked for more. */
export const countDefault = 50

import { describe, expect, it, onTestFinished } from 'vitest'
import { type Announcement, createEvaluations } from '../../src/sandbox/evaluations.ts'
import { type ApiDelivery, type ApiRule, createSandbox } from '../../src/sandbox/sandbox.ts'
import { jumpingClock } from '../support/clock.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const startMs = Date.parse('2026-11-21T05:00:00Z')
const rules = createSandbox().rules

function announcing(how: Announcement) {
  const evaluations = createEvaluations(rules, how, 7)
  const [rule] = rules as readonly [ApiRule, ...ApiRule[]]
  const all = evaluations.between(startMs, startMs + dayMs)
  /** What is announced for the evaluation that follows each of those of a day, and when that really is. */
  const told = rules.flatMap((each) => {
    const own = all.filter(({ ruleId }) => ruleId === each.id).map(({ atMs }) => atMs)
    return own.slice(1).map((atMs, index) => {
      const { nextEvaluationAt } = evaluations.announce(each, own[index] ?? 0)
      return { atMs, nextMs: nextEvaluationAt == null ? null : Date.parse(nextEvaluationAt) }
    })
  })
  const offMs = told.flatMap(({ atMs, nextMs }) => (nextMs === null ? [] : [Math.abs(nextMs - atMs)]))
  return { evaluations, rule, all, told, offMs }
}

describe('the evaluations of the sandbox', () => {
  it('come in several rhythms, and one in five publishes an alert 1 to 20 seconds later', () => {
    const { all } = announcing('true')
    const perRule = new Set(rules.map(({ id }) => all.filter(({ ruleId }) => ruleId === id).length))
    expect([...perRule].sort((a, b) => a - b)).toEqual([1, 15, 24, 96, 288])
    const published = all.flatMap(({ atMs, publishedMs }) =>
      publishedMs === undefined ? [] : [publishedMs - atMs],
    )
    expect(Math.min(...published)).toBeGreaterThanOrEqual(1_000)
    expect(Math.max(...published)).toBeLessThan(20_000)
    expect(published.length / all.length).toBeGreaterThan(0.17)
    expect(published.length / all.length).toBeLessThan(0.23)
  })

  it('are the same however they are asked for', () => {
    const { evaluations, all } = announcing('true')
    const halves = [0, 1].flatMap((half) =>
      evaluations.between(startMs + (half * dayMs) / 2, startMs + ((half + 1) * dayMs) / 2),
    )
    expect(halves).toEqual(all)
  })

  it('announced as true are those that come, to the second', () => {
    expect(Math.max(...announcing('true').offMs)).toBeLessThan(1_000)
  })

  it('announced as noisy are up to a minute off, or not announced', () => {
    const { told, offMs } = announcing('noisy')
    expect(Math.max(...offMs)).toBeLessThan(61_000)
    expect(Math.max(...offMs)).toBeGreaterThan(50_000)
    expect(1 - offMs.length / told.length).toBeGreaterThan(0.05)
    expect(1 - offMs.length / told.length).toBeLessThan(0.15)
  })

  it('announced wrongly tell nothing of those that come, and announced as null nothing at all', () => {
    const { offMs } = announcing('wrong')
    expect(offMs.filter((ms) => ms < minuteMs).length / offMs.length).toBeLessThan(0.25)
    expect(announcing('null').offMs).toEqual([])
  })

  it('fire by the rule that was evaluated, and are announced over HTTP', async () => {
    const clock = jumpingClock(200)
    const sandbox = createSandbox({ evaluations: 'true', clock })
    onTestFinished(() => sandbox.stop())
    const fired: ApiDelivery[] = []
    sandbox.on('fired', (row) => fired.push(row))
    const fromMs = clock.now()
    const { url } = await sandbox.start()
    await until('the clock has stopped', () => fired.length > 100)
    const { between } = createEvaluations(rules, 'true', 1)
    const before = ({ ruleIds: [ruleId], firedAt }: ApiDelivery) =>
      between(Date.parse(firedAt) - 21_000, Date.parse(firedAt)).filter(
        (each) => String(each.ruleId) === ruleId,
      )
    expect(fired.filter((row) => before(row).length === 0)).toEqual([])
    expect(Date.parse(fired[0]?.firedAt ?? '')).toBeGreaterThanOrEqual(fromMs)
    const headers = { authorization: 'Bearer sandbox-token' }
    const { data } = (await (await fetch(`${url}/api/v1/alerts`, { headers })).json()) as { data: ApiRule[] }
    for (const { lastEvaluatedAt, nextEvaluationAt } of data) {
      expect(Date.parse(lastEvaluatedAt ?? '')).toBeLessThanOrEqual(clock.now())
      expect(Date.parse(nextEvaluationAt ?? '')).toBeGreaterThan(clock.now())
    }
  })
})

import { describe, expect, it } from 'vitest'
import { createFaultQueue } from '../../src/sandbox/faults/faults.ts'
import { parseFault } from '../../src/sandbox/faults/parse.ts'
import type { InjectedFault } from '../../src/sandbox/sandbox.ts'
import { connect, startSandbox } from '../support/sandbox.ts'

const first = { endpoint: 'alerts/deliveries', page: 1 }
const fail = (status: number, rest: Partial<InjectedFault> = {}) =>
  ({ kind: 'status', status, ...rest }) as InjectedFault

function statuses(faults: readonly InjectedFault[], requests: readonly { endpoint: string; page: number }[]) {
  const queue = createFaultQueue()
  for (const fault of faults) queue.add(fault)
  return requests.map((request) => {
    const { answer } = queue.take(request)
    return answer?.kind === 'status' ? answer.status : 200
  })
}

describe('a fault', () => {
  it('spoils one answer by default', () => {
    expect(statuses([fail(500)], [first, first])).toEqual([500, 200])
  })

  it('spoils as many as it says, after as many as it says', () => {
    expect(statuses([fail(500, { times: 2, after: 1 })], [first, first, first, first])).toEqual([
      200, 500, 500, 200,
    ])
  })

  it('lasts until it is cleared when times is 0', () => {
    const queue = createFaultQueue()
    queue.add(fail(500, { times: 0 }))
    for (let n = 0; n < 50; n += 1) expect(queue.take(first).answer).toBeDefined()
    queue.clear()
    expect(queue.take(first)).toEqual({})
    expect(queue.list()).toEqual([])
  })

  it('may wait for its page or its endpoint', () => {
    const second = { endpoint: 'alerts/deliveries', page: 2 }
    const rules = { endpoint: 'alerts', page: 1 }
    expect(statuses([fail(500, { page: 2 })], [first, second, second])).toEqual([200, 500, 200])
    expect(statuses([fail(500, { endpoint: 'alerts' })], [first, rules])).toEqual([200, 500])
  })

  it('follows another of its stage and goes together with those of other stages', () => {
    const queue = createFaultQueue()
    for (const fault of [fail(500), fail(429), { kind: 'slow', delayMs: 5 }, { kind: 'cut' }] as const)
      queue.add(fault)
    expect(Object.keys(queue.take(first)).sort()).toEqual(['answer', 'pace', 'transfer'])
    expect(queue.take(first)).toEqual({ answer: fail(429) })
  })
})

describe('a fault from outside', () => {
  it.each([
    { kind: 'status', status: 429, retryAfter: 'soon', detail: { retryAfter: 60 }, times: 3, page: 2 },
    { kind: 'shape', shape: 'lastPage0' },
    { kind: 'hang', headersSent: true },
    { kind: 'between', changes: [{ fire: 2 }, { insert: null, at: 0 }, { removeAt: 3 }, { remove: 7 }] },
  ])('is taken: %j', (fault) => {
    expect(parseFault(fault)).toEqual(fault)
  })

  it.each<[unknown, RegExp]>([
    [null, /kind must be one of between, badRows/],
    [{ kind: 'constructor' }, /kind must be one of/],
    [{ kind: 'status' }, /status must be a number/],
    [{ kind: 'status', status: 42 }, /from 200 to 599/],
    [{ kind: 'slow', delayMs: '5' }, /delayMs must be a number/],
    [{ kind: 'slow', delayMs: -5 }, /must not be negative/],
    [{ kind: 'hang', time: 3 }, /time is unknown; known are kind, headersSent, times/],
    [{ kind: 'shape', shape: 'round' }, /shape must be one of noMeta/],
    [{ kind: 'html', endpoint: 'series' }, /endpoint must be one of instruments, .* macro\/series, /],
    [{ kind: 'between', changes: [{ run: 1 }] }, /each of changes/],
    [{ kind: 'between', changes: [{ insert: {} }] }, /each of changes/],
  ])('is refused with what is wrong: %j', (fault, message) => {
    expect(() => parseFault(fault)).toThrow(message)
  })
})

describe('what happens between pages', () => {
  it('happens just before the page is read', async () => {
    const sandbox = await startSandbox({ history: 250 })
    const client = connect(sandbox)
    let ran = 0
    sandbox.fault({
      kind: 'between',
      page: 2,
      changes: [
        { fire: 3 },
        { remove: 200 },
        { removeAt: 0 },
        { insertAlerts: 2, at: 5 },
        { insert: sandbox.makeRow({ id: 9_000 }), at: 10 },
        {
          run: () => {
            ran += 1
          },
        },
      ],
    })
    expect((await client.deliveries(1)).total).toBe(250)
    expect(ran).toBe(0)
    expect((await client.deliveries(2)).total).toBe(250 + 3 - 2 + 2 + 1)
    expect(ran).toBe(1)
    const ids = sandbox.rows.map(({ id }) => id)
    // makeRow took 251; of the three that fired, 252 to 254, the newest was taken out again.
    expect(ids.slice(0, 2)).toEqual([253, 252])
    expect(ids).not.toContain(200)
    expect(ids[10]).toBe(9_000)
  })

  it('may bring bad rows, which stay among the good ones', async () => {
    const sandbox = await startSandbox({ history: 50 })
    sandbox.fault({ kind: 'badRows' })
    const client = connect(sandbox)
    for (let n = 0; n < 2; n += 1) {
      const { rows, total } = await client.deliveries(1)
      const bad = rows.filter(({ ok }) => !ok)
      expect(rows).toHaveLength(total)
      expect(total).toBe(50 + bad.length)
      expect(bad.length).toBeGreaterThan(10)
      expect(rows.slice(0, 20).filter(({ ok }) => ok).length).toBeGreaterThan(5)
    }
  })

  it('may bring the bad rows that one names', async () => {
    const sandbox = await startSandbox({ history: 2 })
    sandbox.fault({ kind: 'badRows', rows: [{ id: 'x' }, null] })
    const { rows } = await connect(sandbox).deliveries(1)
    expect(rows.map(({ ok }) => ok)).toEqual([false, true, false, true])
  })
})

describe('an answer that drips', () => {
  it('is whole in the end', async () => {
    const sandbox = await startSandbox({ history: 1 })
    sandbox.fault({ kind: 'drip', intervalMs: 1, bytes: 50 })
    expect((await connect(sandbox).deliveries(1)).rows).toHaveLength(1)
  })
})

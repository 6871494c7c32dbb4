import type { LookupAddress } from 'node:dns'
import { expect, test } from 'vitest'
import { sharingLookups } from '../../src/sinks/transport/lookup.ts'

const found: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }]

/** A name server that answers when it is told to. */
function nameServer() {
  const asked: string[] = []
  const answers = new Map<string, (result: LookupAddress[] | Error) => void>()
  const resolve = (hostname: string) =>
    new Promise<LookupAddress[]>((take, refuse) => {
      asked.push(hostname)
      answers.set(hostname, (result) => (result instanceof Error ? refuse(result) : take(result)))
    })
  return {
    asked,
    resolve,
    answer: (name: string, result: LookupAddress[] | Error) => answers.get(name)?.(result),
  }
}

test('all who ask for a name wait for one lookup, and ask anew once it is over', async () => {
  const { asked, resolve, answer } = nameServer()
  const lookup = sharingLookups(resolve, 3)
  const all = Array.from({ length: 20 }, () => lookup('hung.example'))
  expect(asked).toEqual(['hung.example'])
  answer('hung.example', new Error('queryA ETIMEOUT'))
  for (const each of all) await expect(each).rejects.toThrow('ETIMEOUT')
  const again = lookup('hung.example')
  expect(asked).toHaveLength(2)
  answer('hung.example', found)
  expect(await again).toEqual(found)
})

test('a name that is not found holds up no other', async () => {
  const { asked, resolve, answer } = nameServer()
  const lookup = sharingLookups(resolve, 3)
  const hung = Array.from({ length: 20 }, () => lookup('hung.example'))
  const good = lookup('good.example')
  answer('good.example', found)
  expect(await good).toEqual(found)
  answer('hung.example', found)
  await Promise.all(hung)
  expect(asked).toEqual(['hung.example', 'good.example'])
})

test('no more run at once than leave a thread for the feed; the others follow in turn', async () => {
  const { asked, resolve, answer } = nameServer()
  const lookup = sharingLookups(resolve, 2)
  const all = ['a', 'b', 'c', 'd'].map(lookup)
  expect(asked).toEqual(['a', 'b'])
  answer('b', new Error('no such name'))
  await expect(all[1]).rejects.toThrow('no such name')
  expect(asked).toEqual(['a', 'b', 'c'])
  answer('a', found)
  await all[0]
  expect(asked).toEqual(['a', 'b', 'c', 'd'])
  for (const name of ['c', 'd']) answer(name, found)
  expect(await Promise.all([all[2], all[3]])).toEqual([found, found])
})

test('names that are found after a long time, as where the first of two name servers is dead, do not wait for each other', async () => {
  const { asked, resolve, answer } = nameServer()
  let nowMs = 0
  const lookup = sharingLookups(resolve, 3, { monotonicMs: () => nowMs })
  const names = ['a.example', 'b.example', 'c.example']
  for (const round of [1, 2, 3]) {
    const all = names.map(lookup)
    expect(asked).toHaveLength(3 * round)
    nowMs += 5_005
    for (const name of names) answer(name, found)
    expect(await Promise.all(all)).toEqual([found, found, found])
  }
})

test('names that were not found after a long time share one thread until one of them is found', async () => {
  const { asked, resolve, answer } = nameServer()
  let nowMs = 0
  const lookup = sharingLookups(resolve, 3, { monotonicMs: () => nowMs })
  const names = ['a.hung', 'b.hung', 'c.hung']
  const first = names.map(lookup)
  nowMs = 10_000
  for (const name of names) answer(name, new Error('queryA ETIMEOUT'))
  for (const each of first) await expect(each).rejects.toThrow('ETIMEOUT')
  const again = names.map(lookup)
  expect(asked.slice(3)).toEqual(['a.hung'])
  for (const name of ['good.example', 'better.example']) {
    const good = lookup(name)
    answer(name, found)
    expect(await good).toEqual(found)
  }
  nowMs = 20_000
  answer('a.hung', new Error('queryA ETIMEOUT'))
  await expect(again[0]).rejects.toThrow('ETIMEOUT')
  for (const [index, name] of ['b.hung', 'c.hung'].entries()) {
    expect(asked.at(-1)).toBe(name)
    answer(name, found)
    expect(await again[index + 1]).toEqual(found)
  }
  const back = ['b.hung', 'c.hung'].map(lookup)
  expect(asked.slice(-2)).toEqual(['b.hung', 'c.hung'])
  for (const name of ['b.hung', 'c.hung']) answer(name, found)
  expect(await Promise.all(back)).toEqual([found, found])
})

import { describe, expect, it } from 'vitest'
import { createDrawer, type DrawerOptions } from '../../../src/sinks/chart/drawer.ts'
import { onTestFinished } from '../../support/finished.ts'
import { until } from '../../support/until.ts'

/** The thread that draws, with the real library, and what goes wrong with it. */
const svg = (word: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="48" height="22"><text x="2" y="15">${word}</text></svg>`
const patienceMs = 20_000

function drawer(options: DrawerOptions = {}) {
  const faults: string[] = []
  const made = createDrawer({ waitMsMax: patienceMs, ...options, onFault: (reason) => faults.push(reason) })
  onTestFinished(() => made.close())
  return { ...{ faults, made }, draw: (text: string, waitMs = patienceMs) => made.draw(text, waitMs) }
}

const code = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

describe('a chart', () => {
  it('is drawn once for all who ask for it, also at the same time, and again after the thread ended for want of work', async () => {
    const { draw, faults } = drawer({ idleMs: 1 })
    const [one, two] = await Promise.all([draw(svg('فولاد')), draw(svg('فولاد'))])
    expect(
      Buffer.from(one ?? [])
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG')
    expect(Buffer.from(one ?? []).readUInt32BE(16)).toBe(84)
    expect(two).toBe(one)
    expect(await draw(svg('فولاد'))).toBe(one)
    expect(await draw(svg('خودرو'))).not.toEqual(one)
    expect(faults).toEqual([])
  })

  it('is drawn also by the next thread, which takes over after some charts', async () => {
    const { draw, faults } = drawer()
    for (let count = 0; count < 12; count += 1) expect(await draw(svg(String(count)))).toBeDefined()
    expect(faults).toEqual([])
  })

  it('is drawn by the next thread also where charts are wanted all the time', async () => {
    const counts = code(`
      import { parentPort } from 'node:worker_threads'
      let drawn = 0
      parentPort.on('message', ({ id }) => parentPort.postMessage({ id, png: new Uint8Array([++drawn]) }))`)
    const { draw, faults } = drawer({ workerUrl: counts })
    let wanted = 0
    const drawn: number[] = []
    const one = async () => {
      while (wanted < 30) drawn.push((await draw(svg(String(wanted++))))?.[0] ?? 0)
    }
    await Promise.all(Array.from({ length: 8 }, one))
    expect(drawn).toHaveLength(30)
    expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([1, 10])
    expect(faults).toEqual([])
  })

  it('that cannot be drawn is none, and the next one is', async () => {
    const { draw, faults } = drawer()
    expect(await draw('<svg>&')).toBeUndefined()
    expect(await draw(' '.repeat(200_000))).toBeUndefined()
    expect(await draw(svg('x'))).toBeDefined()
    expect(faults).toEqual([])
  })

  it.each([
    ['the library is not there', code('throw new Error("no such library")'), undefined, /no such library/],
    ['it takes for ever', code('for (;;);'), 100, /no chart in 100 ms/],
    ['the thread ends', code('process.exit()'), undefined, /its thread ended/],
    // As where the system has no thread left: the error is thrown at once.
    ['no thread can be started', new URL('none:'), undefined, /./],
  ])(
    'is none where %s; that is said once, and nobody waits for the next',
    async (_what, workerUrl, stuckMs, reason) => {
      const { draw, faults } = drawer({
        workerUrl,
        ...(stuckMs === undefined ? {} : { stuckMs }),
      })
      expect(await Promise.all([draw(svg('a')), draw(svg('b'))])).toEqual([undefined, undefined])
      expect(await draw(svg('a'))).toBeUndefined()
      expect(faults).toEqual([expect.stringMatching(reason)])
    },
  )

  it('that would wait behind many others is none, at once', async () => {
    const { draw } = drawer()
    const all = await Promise.all(Array.from({ length: 20 }, (_, count) => draw(svg(String(count)))))
    expect(all.map((png) => png !== undefined)).toEqual(all.map((_, index) => index < 12))
  })

  it('that is late keeps no other message waiting: until it is drawn there is none, at once, and then it is kept', async () => {
    const slow = code(`
      import { parentPort } from 'node:worker_threads'
      parentPort.on('message', ({ id }) =>
        setTimeout(() => parentPort.postMessage({ id, png: new Uint8Array([1]) }), 300))`)
    const { draw } = drawer({ workerUrl: slow })
    expect(await draw(svg('late'), 0)).toBeUndefined()
    expect(await draw(svg('next'))).toBeUndefined()
    expect(await draw(svg('late'))).toBeUndefined()
    await until('it is drawn', async () => (await draw(svg('late'), 0)) !== undefined)
    expect(await draw(svg('next'))).toBeDefined()
  })
})

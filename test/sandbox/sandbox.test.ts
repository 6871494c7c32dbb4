import { describe, expect, it } from 'vitest'
import { createGenerator } from '../../src/sandbox/generator.ts'
import { createRandom } from '../../src/sandbox/random.ts'
import {
  type ApiDelivery,
  createSandbox,
  type SandboxOptions,
  type SandboxRequest,
} from '../../src/sandbox/sandbox.ts'
import { jumpingClock } from '../support/clock.ts'
import { connect, type StartedSandbox, startSandbox } from '../support/sandbox.ts'

function nextFired(sandbox: StartedSandbox, count: number): Promise<ApiDelivery[]> {
  return new Promise((resolve) => {
    const rows: ApiDelivery[] = []
    const off = sandbox.on('fired', (row) => {
      rows.push(row)
      if (rows.length < count) return
      off()
      resolve(rows)
    })
  })
}

async function idsOf(sandbox: StartedSandbox, page = 1): Promise<string[]> {
  return (await connect(sandbox).deliveries(page)).rows.map(({ key }) => key)
}

describe('the rows', () => {
  it('are the same for the same seed, and others for another', () => {
    const rows = (seed: number) => createSandbox({ seed, history: 50 }).rows.map(({ headline }) => headline)
    expect(rows(7)).toEqual(rows(7))
    expect(rows(7)).not.toEqual(rows(8))
  })

  it('speak Persian and English, of all kinds, some without a symbol or a reason', () => {
    const { rows } = createSandbox({ history: 400 })
    expect(new Set(rows.map(({ kind }) => kind))).toEqual(
      new Set(['price', 'volume', 'indicator', 'filing', 'screen']),
    )
    const persian = rows.filter(({ headline }) => /[آ-ی]{3}/.test(headline.replace(/^\S+/, '')))
    expect(persian.length).toBeGreaterThan(200)
    expect(persian.length).toBeLessThan(400)
    expect(rows.map(({ symbol }) => symbol)).toEqual(
      expect.arrayContaining(['فولاد', 'شپنا', 'IR_GOLD_18K', null]),
    )
    expect(rows.some(({ why }) => why === null)).toBe(true)
    expect(rows.every(({ firedAt }) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(firedAt))).toBe(true)
  })

  it('have ids that grow with time, or unique ones in any order', () => {
    const growing = createSandbox({ history: 300, firstId: 5_000 }).rows.map(({ id }) => id)
    expect(growing).toEqual(Array.from({ length: 300 }, (_, index) => 5_299 - index))
    const shuffled = createSandbox({ history: 300, ids: 'shuffled' }).rows.map(({ id }) => id)
    expect(new Set(shuffled)).toHaveLength(300)
    expect(shuffled).not.toEqual(shuffled.toSorted((a, b) => b - a))
  })

  it('can be fired, put in and taken out by hand', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const heard = nextFired(sandbox, 3)
    const [first, second] = sandbox.fireMany(2, { kind: 'price' })
    const third = sandbox.fire({ id: 900, headline: 'mine' })
    expect(await heard).toEqual([first, second, third])
    expect(third).toMatchObject({ id: 900, headline: 'mine' })
    sandbox.insert(sandbox.makeRow({ id: 800 }), 2)
    sandbox.insert(sandbox.makeRow({ id: 700 }), 99)
    expect(sandbox.remove(second?.id ?? 0)).toBe(true)
    expect(sandbox.remove(12_345)).toBe(false)
    expect(await idsOf(sandbox)).toEqual(['900', '800', '4', '3', '2', '1', '700'])
    expect(sandbox.rows.map(({ id }) => id)).toEqual([900, 800, 4, 3, 2, 1, 700])
  })

  it('tell the rules when they last fired', () => {
    const sandbox = createSandbox()
    expect(sandbox.rules.some(({ lastFiredAt }) => lastFiredAt !== null)).toBe(false)
    const { ruleIds, firedAt } = sandbox.fire()
    const fired = sandbox.rules.filter(({ lastFiredAt }) => lastFiredAt !== null)
    expect(fired.map(({ id }) => String(id)).sort()).toEqual([...ruleIds].sort())
    expect(fired[0]?.lastFiredAt).toBe(firedAt)
  })

  it('may come from another generator', async () => {
    const standard = createGenerator(1)
    const generator = {
      ...standard,
      alert: (id: number, ms: number) => ({ ...standard.alert(id, ms), kind: 'own' }),
    }
    expect((await startSandbox({ generator })).fire().kind).toBe('own')
  })
})

describe('firing by itself', () => {
  async function gapsOf(options: SandboxOptions, count: number): Promise<number[]> {
    const sandbox = createSandbox({ ...options, clock: jumpingClock(count) })
    const times: number[] = []
    const fired = new Promise<void>((resolve) => {
      sandbox.on('fired', (row) => {
        if (times.push(Date.parse(row.firedAt)) === count) resolve()
      })
    })
    await sandbox.start()
    await fired
    await sandbox.stop()
    return times.slice(1).map((ms, index) => ms - (times[index] ?? 0))
  }

  it('may be even', async () => {
    expect(new Set(await gapsOf({ ratePerMinute: 6, spacing: 'even' }, 20))).toEqual(new Set([10_000]))
  })

  it('is a Poisson process by default, with the wanted rate', async () => {
    const gaps = await gapsOf({ ratePerMinute: 6 }, 500)
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
    expect(mean).toBeGreaterThan(8_500)
    expect(mean).toBeLessThan(11_500)
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length)
    expect(deviation / mean).toBeGreaterThan(0.8)
  })

  it('can be changed and ended while it runs', async () => {
    const sandbox = await startSandbox()
    const fired = nextFired(sandbox, 5)
    sandbox.setRate(60_000)
    await fired
    sandbox.stopFiring()
    const { length } = sandbox.rows
    await connect(sandbox).deliveries(1)
    expect(sandbox.rows).toHaveLength(length)
  })
})

describe('chance', () => {
  it('is spread evenly', () => {
    const random = createRandom(42)
    const counts = [0, 0, 0, 0]
    for (let n = 0; n < 4_000; n += 1) {
      const place = random.int(4)
      counts[place] = (counts[place] ?? 0) + 1
    }
    expect(Math.min(...counts)).toBeGreaterThan(900)
    expect(() => random.pick([] as unknown as [number])).not.toThrow()
  })
})

describe('the log of requests', () => {
  it('has each call with its page, its status, its units and its faults', async () => {
    const sandbox = await startSandbox()
    const heard: SandboxRequest[] = []
    sandbox.on('request', (request) => heard.push(request))
    const client = connect(sandbox)
    await client.deliveries(1)
    sandbox.fault({ kind: 'status', status: 500 })
    await client.rules(2).catch(() => {})
    expect(sandbox.requests).toEqual([
      expect.objectContaining({
        method: 'GET',
        path: '/api/v1/alerts/deliveries',
        page: 1,
        status: 200,
        units: 1,
        faults: [],
      }),
      expect.objectContaining({ path: '/api/v1/alerts', page: 2, status: 500, units: 1, faults: ['status'] }),
    ])
    expect(heard).toEqual(sandbox.requests)
  })
})

describe('tokens and accounts', () => {
  it('can turn bad and good again while the sandbox runs', async () => {
    const sandbox = await startSandbox({ tokens: [{ value: 'sandbox-token' }, { value: 'other' }] })
    const client = connect(sandbox)
    sandbox.setTokenState('revoked', 'other')
    await client.deliveries(1)
    sandbox.setTokenState('expired')
    await expect(client.deliveries(1)).rejects.toMatchObject({ code: 'unauthenticated' })
    sandbox.setTokenState('valid')
    await client.deliveries(1)
  })

  it('can show a stranger’s feed, with the same ids, and the own one again', async () => {
    const sandbox = await startSandbox({ history: 5 })
    const mine = sandbox.rows
    sandbox.switchAccount('stranger', 3)
    expect(await idsOf(sandbox)).toEqual(['3', '2', '1'])
    sandbox.fire()
    sandbox.switchAccount('main')
    expect(sandbox.rows).toEqual(mine)
  })
})

describe('its life', () => {
  it('goes on where it was after a stop', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const client = connect(sandbox)
    await sandbox.stop()
    await expect(client.deliveries(1)).rejects.toMatchObject({ code: 'connect' })
    sandbox.fire()
    expect((await sandbox.start()).url).toBe(sandbox.url)
    expect((await client.deliveries(1)).rows).toHaveLength(4)
  })

  it('ends answers that hang, drip or wait when it stops', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const client = connect(sandbox)
    for (const fault of [
      { kind: 'hang' },
      { kind: 'drip', intervalMs: 60_000 },
      { kind: 'slow', delayMs: 60_000 },
    ] as const) {
      sandbox.fault(fault)
      const arrived = new Promise<void>((resolve) => void sandbox.on('request', () => resolve()))
      const failed = expect(client.deliveries(1)).rejects.toMatchObject({ code: 'connection_lost' })
      await arrived
      await sandbox.stop()
      await failed
      await sandbox.start()
    }
  })

  it('says which port it cannot have', async () => {
    const sandbox = await startSandbox()
    const port = Number(new URL(sandbox.url).port)
    await expect(createSandbox({ port }).start()).rejects.toThrow(
      `127.0.0.1:${port}: something else listens there`,
    )
  })

  it('may stand behind a path prefix', async () => {
    const sandbox = await startSandbox({ pathPrefix: '/market', history: 1 })
    expect(sandbox.url).toMatch(/\/market$/)
    expect((await connect(sandbox).deliveries(1)).rows).toHaveLength(1)
    const bare = connect({ url: sandbox.url.replace('/market', '') })
    await expect(bare.deliveries(1)).rejects.toMatchObject({ code: 'not_found' })
  })
})

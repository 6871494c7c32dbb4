import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { buildApp } from '../support/app.ts'
import { api, bridgeConfig, readiness } from '../support/bridge.ts'
import { letPass, passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { testFolder } from '../support/process.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** A token that a person has to put right: the source stops where people see it, and goes on once it is. */

const redis = useRedis()
const long = process.env['LONG'] === '1'
const inTime = { timeout: long ? 400_000 : 30_000 }
const minuteMs = 60_000
/** How late anything may be on a busy machine. */
const slackMs = 4_000

it(
  'a token that is refused stops the source, sends go on, and it resumes by itself with the right one',
  inTime,
  async () => {
    const row = failureRow('It refuses the token')
    const { sandbox, shown, log, lines, source, clock, useToken, held, told } = await rig()
    await held(() => sandbox.setTokenState('revoked', 'first-token-canary'))
    shown.fire(3)
    await row.kept('the source is shown as `stopped` with the reason', async () => {
      expect(await source()).toMatchObject({
        state: 'stopped',
        reason: expect.stringMatching(/does not accept the token/),
      })
      expect(lines.filter(({ msg, level }) => msg === 'poller.state' && level === 'error')).toHaveLength(1)
    })
    await row.kept('sends go on', () => expect(log.taken).toHaveLength(3))
    sandbox.setTokenState('valid', 'first-token-canary')
    const tookMs = await resumesAfter(5 * minuteMs, { sandbox, clock })
    await until('everything arrives', () => hasAll(shown, log))
    await row.kept('everything stays in the feed', () => expect(judge(shown, log)).toEqual(clean))
    await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
    await row.heals('else 5 min after the token is right', tookMs - slackMs)
    sandbox.setTokenState('revoked', 'first-token-canary')
    await until('it is stopped again', async () => (await source())?.state === 'stopped')
    // Half of it is written at first.
    useToken('second')
    const calls = sandbox.requests.length
    await letPass(clock, 10_000)
    await until('half a token is tried', () => sandbox.requests.length > calls)
    useToken('second-token-canary')
    const otherMs = await resumesAfter(10_000, { sandbox, clock })
    await row.heals('10 s after its file holds another one', otherMs - slackMs)
    await until('the status is well', async () => (await source())?.state === 'running')
    expect(await told()).not.toMatch(/token-canary/)
  },
)

it(
  'a token without its scope stops the source, and a reload with the right one starts it at once',
  inTime,
  async () => {
    const row = failureRow('It refuses the token')
    const { app, sandbox, shown, log, source, useToken, held, told } = await rig()
    await held(() => sandbox.fault({ kind: 'status', status: 403, code: 'scope_required', times: 0 }))
    shown.fire(3)
    expect((await source())?.reason).toMatch(/lacks the scope/)
    useToken('second-token-canary')
    sandbox.clearFaults()
    const calls = sandbox.requests.length
    const reloadedMs = performance.now()
    expect(await app.reload()).toEqual({ ok: true })
    await until('a call', () => sandbox.requests.length > calls)
    await row.heals('at once with a reload', () =>
      expect(performance.now() - reloadedMs).toBeLessThan(slackMs),
    )
    await until('everything arrives', () => hasAll(shown, log))
    await row.kept('everything stays in the feed', () => expect(judge(shown, log)).toEqual(clean))
    await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
    await until('the status is well again', async () => (await source())?.state === 'running')
    expect(await told()).not.toMatch(/token-canary/)
  },
)

it(
  'a token that shows the feed of another account stops the source, which takes nothing of it',
  inTime,
  async () => {
    const row = failureRow("The token shows another account's feed")
    const { sandbox, shown, log, source, clock, held } = await rig()
    await held(() => sandbox.switchAccount('another', 300))
    await row.kept('the source is `stopped`', async () =>
      expect(await source()).toMatchObject({
        state: 'stopped',
        reason: expect.stringContaining('another feed'),
      }),
    )
    sandbox.switchAccount('main')
    shown.fire(3)
    const tookMs = await resumesAfter(5 * minuteMs, { sandbox, clock })
    await until('everything arrives', () => hasAll(shown, log))
    // Nothing that was not shown as its own, and all of that.
    await row.kept('nothing of it is taken', () => expect(judge(shown, log)).toEqual(clean))
    await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
    await row.heals('5 min after the token is right', tookMs - slackMs)
  },
)

it('where units are few a refused token is tried again by its plan, which leaves units for when it is right', async () => {
  const row = failureRow('It refuses the token')
  const { sandbox, shown, log, clock, held, triedByPlan } = await rig('20m')
  await held(() => sandbox.setTokenState('revoked', 'first-token-canary'))
  shown.fire(3)
  await triedByPlan()
  sandbox.setTokenState('valid', 'first-token-canary')
  await row.heals("or its plan's next poll where units are few", () =>
    resumesAfter(20 * minuteMs, { sandbox, clock, pass: (ms) => clock.pass(ms) }),
  )
  await until('everything arrives', () => hasAll(shown, log))
  await row.kept('everything stays in the feed', () => expect(judge(shown, log)).toEqual(clean))
  await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
})

it("where units are few a token of another account is tried again by the source's plan", async () => {
  const row = failureRow("The token shows another account's feed")
  const { sandbox, shown, log, clock, held, triedByPlan } = await rig('20m')
  await held(() => sandbox.switchAccount('another', 300))
  await triedByPlan()
  sandbox.switchAccount('main')
  shown.fire(3)
  await row.heals("or its plan's next poll where units are few", () =>
    resumesAfter(20 * minuteMs, { sandbox, clock, pass: (ms) => clock.pass(ms) }),
  )
  await until('everything arrives', () => hasAll(shown, log))
  await row.kept('nothing of it is taken', () => expect(judge(shown, log)).toEqual(clean))
  await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
})

/**
 * A bridge that has seen three alerts of a feed; their receiver fails until the source is stopped. `every`: the pace of one with few
 * units, whose clock jumps also in the long form.
 */
async function rig(every?: string) {
  const clock = passingClock()
  const sandbox = await startSandbox({
    ...{ clock, firstId: 10_000, history: 0 },
    tokens: [{ value: 'first-token-canary' }, { value: 'second-token-canary' }],
  })
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  let down = true
  const log = logOf('hook', hook, { status: 204 }, () => (down ? { status: 503 } : undefined))
  const tokenFile = join(testFolder(), 'token')
  const useToken = (value: string) => writeFileSync(tokenFile, value)
  useToken('first-token-canary')
  const token = `tokenFile: ${tokenFile}`
  const text = bridgeConfig({
    redis,
    feed: sandbox.url,
    sinks: { hook: hook.url },
    token,
    ...(every && { every }),
  })
  const load = () => parseConfig(text, { env: {}, folder: '/' })
  const { app, lines } = buildApp(text, { load, ...(long && every === undefined ? {} : { clock }) })
  const url = await app.start()
  shown.fire(3)
  await until('sends are tried', () => log.attempts() >= 3)
  const source = async () => {
    const { sources } = await api<{
      sources: { state: string; reason: string | null; nextPollAt: string | null }[]
    }>(url, '/api/v1/status')
    return sources[0]
  }
  const page = async (path: string) => (await fetch(`${url}${path}`)).text()
  return {
    ...{ app, sandbox, shown, log, lines, source, clock, useToken },
    /** Stops the source by this, and lets the receiver take what was seen before. */
    async held(stop: () => void) {
      stop()
      if (every !== undefined) clock.pass(20 * minuteMs)
      await until('the status says so', async () => (await source())?.state === 'stopped')
      expect(await page('/')).toContain((await source())?.reason)
      expect(await readiness(url)).toBe('ok')
      const calls = sandbox.requests.length
      down = false
      await until('what was seen before is sent', () => log.taken.length === 3)
      expect(sandbox.requests).toHaveLength(calls)
    },
    /** The first tries come after five minutes each, as of every poll that fails; lets these pass until one waits for the plan. */
    async triedByPlan() {
      const waitsMs = async () => Date.parse((await source())?.nextPollAt ?? '') - clock.now()
      for (let tries = 0; tries < 5 && (await waitsMs()) < 19 * minuteMs; tries += 1) {
        const calls = sandbox.requests.length
        clock.pass(5 * minuteMs)
        await until('it is tried', async () => sandbox.requests.length > calls && (await waitsMs()) > 0)
      }
      expect(await waitsMs()).toBeGreaterThan(19 * minuteMs)
    },
    told: async () => JSON.stringify(lines) + (await page('/metrics')) + (await page('/')),
  }
}

/** How long after now the next call comes, of which there is none for most of this time. */
async function resumesAfter(
  ms: number,
  {
    sandbox,
    clock,
    pass = (passedMs) => letPass(clock, passedMs),
  }: Pick<Awaited<ReturnType<typeof rig>>, 'sandbox' | 'clock'> & { pass?: (ms: number) => unknown },
): Promise<number> {
  const [calls, fromMs] = [sandbox.requests.length, clock.now()]
  await pass(ms - 10_000)
  expect(sandbox.requests).toHaveLength(calls)
  await pass(10_000)
  await until('a call', () => sandbox.requests.length > calls)
  return (sandbox.requests[calls]?.atMs ?? Number.NaN) - fromMs
}

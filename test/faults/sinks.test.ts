import dns from 'node:dns/promises'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { AlertStory } from '../../src/admin/views/delivery-view.ts'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { deadLettersCommand } from '../../src/cli/dead-letters.ts'
import { parseConfig } from '../../src/config/load.ts'
import { pausesMs, type RetryPolicy, spanOf } from '../../src/delivery/backoff.ts'
import { createQueues } from '../../src/delivery/queue/queues.ts'
import { defaultTuning } from '../../src/delivery/settings.ts'
import { deliveryJob, jobs } from '../delivery/rig.ts'
import { configOf, type StartedApp, startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { badServers, otherAuthority, testAuthority, testServer } from '../support/certificates.ts'
import { run } from '../support/cli.ts'
import { failureRow } from '../support/failure-row.ts'
import { onTestFinished, sideBySide } from '../support/finished.ts'
import {
  clean,
  hasAll,
  judge,
  logOf,
  mailLog,
  type Shown,
  type SinkLog,
  sentAgain,
  showing,
} from '../support/oracle.ts'
import { ownTime } from '../support/own-time.ts'
import { testFolder } from '../support/process.ts'
import { unusedPort } from '../support/raw-server.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import {
  type ReceiverAnswer,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'

/**
 * What receivers may do, under a whole bridge, at the pauses that a sink has by itself. What single attempts make of it
 * is told by the contract of all sinks, and longer outages by `delivery/breaker-lane.test.ts`.
 */

const redis = useRedis()
const taken = { status: 204 } as const
const patient = 'allowPrivateNetworks: true, timeout: 3s'
/** How late anything may be, by the time that this process had a processor. */
const slackMs = 4_000

const long = process.env['LONG'] === '1'
const shortPauseMs = 500
const hourMs = 3_600_000

const hanging = 'takes-it-and-hangs'
const moods: Readonly<Record<string, ReceiverAnswer>> = {
  [hanging]: { kind: 'hang' },
  'says-200-and-breaks-off-its-answer': { kind: 'broken', status: 200 },
  'answers-a-byte-now-and-then': { kind: 'drip', status: 200, everyMs: 100 },
  'answers-without-end': { kind: 'flood', status: 200 },
  'breaks-the-connection': { kind: 'reset' },
  'speaks-no-http': { kind: 'garbage' },
  'says-503': { status: 503 },
  'says-429-and-when-to-come-again': { status: 429, headers: { 'retry-after': '1' } },
}
/** Final: given up at once, with the reason. */
const refusing = 'wants-a-login'

it.concurrent(
  'each of many bad receivers gets everything once it is well, beside all the others, or it stands in the dead letters',
  sideBySide(async () => {
    const [row, refusal] = [failureRow('One hangs, resets'), failureRow('One refuses for good (4xx)')]
    const sandbox = await startSandbox()
    const shown = showing(sandbox)
    const well = new Set<string>()
    const receivers = new Map<string, WebhookReceiver>()
    const logs: SinkLog[] = []
    const silent = new Set(['answers-a-byte-now-and-then', 'answers-without-end'])
    for (const [name, mood] of Object.entries({ ...moods, [refusing]: { status: 401 } })) {
      const receiver = await startWebhookReceiver()
      receivers.set(name, receiver)
      logs.push(logOf(name, receiver, taken, () => (well.has(name) ? undefined : mood)))
    }
    const addresses = Object.fromEntries([...receivers].map(([name, { url }]) => [name, url]))
    const { url, lines } = await startApp(
      bridgeConfig({ redis, feed: sandbox.url, sinks: addresses, sink: patient }),
    )
    shown.fire(10)
    const others = logs.filter(({ name }) => name !== refusing)
    const tookMs = await heal(lines, shown, others, (name) => well.add(name))
    const dead = await deadMarks(url, shown, /401/)
    const requestsOf = (name: string): Pick<WebhookReceiver, 'requests'> =>
      receivers.get(name) ?? { requests: [] }
    const nameOf = (mark: string) => `main.${shown.ids.get(mark)}`
    const late = await lateAnswers(url, shown)
    await row.kept('everything', () => {
      for (const log of others) {
        const { requests } = requestsOf(log.name)
        const came = (mark: string) => requests.filter(({ body }) => body.includes(mark)).length
        const took = (mark: string) => log.taken.filter((each) => each === mark).length
        // What hangs is waited for in vain without having been taken.
        const hung = (mark: string) => (log.name === hanging ? came(mark) - took(mark) : 0)
        const times = [...(late.get(log.name) ?? [])].map(([mark, n]) => [mark, n - hung(mark)] as const)
        const cutOff = new Map(times)
        expect({ sink: log.name, ...judge(shown, log, { cutOff }) }).toEqual({ sink: log.name, ...clean })
      }
    })
    await row.twice('what it took without saying so', () => {
      // Each request after the first has the same id, and none follows an answer that says so.
      for (const { name } of others) {
        const isLate = (id: string) => [...(late.get(name)?.keys() ?? [])].some((mark) => id === nameOf(mark))
        const again = sentAgain(requestsOf(name))
        if (silent.has(name)) expect(again.filter((id) => !isLate(id))).toEqual([])
        else expect(again).not.toEqual([])
      }
    })
    await row.heals('the pause of the schedule: 5 s at first', Math.max(...tookMs.values()) - slackMs)

    const refused = logs.find(({ name }) => name === refusing)
    if (refused === undefined) throw new Error('no log')
    await refusal.kept('the alert, as a dead letter with the answer', () =>
      expect(judge(shown, refused, { dead })).toEqual(clean),
    )
    await refusal.twice('nothing', () => expect(sentAgain(requestsOf(refusing))).toEqual([]))
    await refusal.heals('`dead-letters retry`', async () => {
      well.add(refusing)
      process.env['ADMIN_TOKEN'] = adminToken
      const { out } = await run(deadLettersCommand(), 'retry', '--sink', refusing, '--url', url)
      expect(out).toContain('10')
      await until('it has everything', () => hasAll(shown, refused))
      expect(judge(shown, refused)).toEqual(clean)
    })
  }),
  60_000,
)

it.concurrent(
  'a receiver that has no listener, no good certificate and no name for a while gets everything when it has',
  sideBySide(async () => {
    const row = failureRow('One has no listener')
    const sandbox = await startSandbox()
    const shown = showing(sandbox)
    const ca = join(testFolder(), 'ca.pem')
    writeFileSync(ca, testAuthority + otherAuthority)
    const names = failNames('hooks.test')
    const wrong = new Map<string, WebhookReceiver>()
    const addresses: Record<string, string> = {}
    for (const [name, tls] of Object.entries(badServers)) {
      const server = await startWebhookReceiver({ tls })
      wrong.set(name, server)
      addresses[name] = `https://localhost:${server.port}/hook`
    }
    const silent = await unusedPort()
    const named = await startWebhookReceiver()
    addresses['listener'] = `http://127.0.0.1:${silent}/hook`
    addresses['name'] = named.url.replace('127.0.0.1', 'hooks.test')
    const text = bridgeConfig({ redis, feed: sandbox.url, sinks: addresses, sink: patient })
    const { url, lines } = await startApp(text.replaceAll(/(url: "https[^"]*",)/g, `$1 tls: { ca: ${ca} },`))
    shown.fire(5)
    const receivers: WebhookReceiver[] = []
    const logs = Object.keys(addresses).map((name): SinkLog & { mend(): Promise<void> } => {
      const log = { name, taken: [] as string[], names: new Map(), attempts: () => 0 }
      return Object.assign(log, {
        async mend() {
          await wrong.get(name)?.stop()
          if (name === 'name') names.mend()
          const port = name === 'listener' ? silent : wrong.get(name)?.port
          const tls = wrong.has(name) ? { tls: testServer } : {}
          const receiver =
            name === 'name' ? named : await startWebhookReceiver({ ...(port ? { port } : {}), ...tls })
          receivers.push(receiver)
          Object.assign(log, logOf(name, receiver, taken))
        },
      })
    })
    const tookMs = await heal(lines, shown, logs, (name) => logs.find((each) => each.name === name)?.mend())
    const late = await lateAnswers(url, shown)
    await row.kept('everything', () => {
      for (const log of logs) {
        const judged = judge(shown, log, { cutOff: late.get(log.name) ?? new Map() })
        expect({ sink: log.name, ...judged }).toEqual({ sink: log.name, ...clean })
      }
    })
    await row.twice('nothing', () => {
      const slow = [...late.values()].flatMap((times) => [...times.keys()])
      const again = [...wrong.values(), ...receivers].flatMap(sentAgain)
      expect(again.filter((id) => !slow.some((mark) => id === `main.${shown.ids.get(mark)}`))).toEqual([])
      expect([...wrong.values()].map(({ requests }) => requests.length)).toEqual([0, 0, 0])
    })
    await row.heals('as above', () => expect(Math.max(...tookMs.values())).toBeLessThan(5_000 + slackMs))
    const { data: story } = await api<{ data: AlertStory }>(
      url,
      `/api/v1/deliveries/main/${[...shown.ids.values()][0]}`,
    )
    // On a busy machine a handshake, too, may not end in time.
    const told = story.deliveries.map(({ sink, attempts }) => ({
      sink,
      first: attempts.find(({ reason }) => reason !== 'timeout'),
    }))
    const reasons = told.map(({ sink, first }) => [sink, first?.text])
    expect(Object.fromEntries(reasons)).toEqual({
      expired: expect.stringMatching(/expired/),
      'wrong-name': expect.stringMatching(/altnames/),
      'self-signed': expect.stringMatching(/self-signed/),
      listener: expect.stringMatching(/ECONNREFUSED/),
      name: expect.stringMatching(/EAI_AGAIN/),
    })
  }),
  60_000,
)

it.concurrent(
  'a mail server that dies after DATA, greets with 421 or puts off, and Slack that says 429, get everything',
  sideBySide(async () => {
    const row = failureRow('A mail server dies after DATA')
    const sandbox = await startSandbox()
    const shown = showing(sandbox)
    const smtp = await startSmtpReceiver()
    const slack = await startSlackReceiver()
    /** Message-IDs of mails that the server took and died with. */
    const swallowed: string[] = []
    const nowMs = ownTime()
    let failedAtMs = 0
    const mail = mailLog('desk', smtp, (attempt, raw) => {
      if (attempt > 6) return undefined
      failedAtMs = nowMs()
      if (attempt <= 2) swallowed.push(messageId(raw))
      return attempt <= 2
        ? 'drop'
        : attempt <= 4
          ? { code: 421, text: 'closing' }
          : { code: 451, text: 'later' }
    })
    const chat = logOf('ops', slack, { status: 200, body: 'ok' }, (_mark, attempt) =>
      attempt <= 2 ? { status: 429, headers: { 'retry-after': '1' } } : undefined,
    )
    await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 } } }
sinks:
  desk: { type: email, smtp: "${smtp.url}", startTls: "off", from: Alerts <a@example.com>, to: [desk@example.com], rateLimit: { max: 100, per: 1s }, ${patient} }
  ops: { type: slack, url: "${slack.url}", rateLimit: { max: 100, per: 1s }, ${patient} }
routes: [{ sinks: [desk, ops] }]
`)
    shown.fire(10)
    for (const log of [mail, chat])
      await until(`${log.name} has everything`, () => hasAll(shown, log), 40_000)
    const tookMs = nowMs() - failedAtMs
    await row.kept('everything', () => {
      for (const log of [mail, chat])
        expect({ sink: log.name, ...judge(shown, log) }).toEqual({ sink: log.name, ...clean })
    })
    await row.twice('the mail that it may have taken, with the same `Message-ID`', () => {
      expect(swallowed).toHaveLength(2)
      expect(smtp.mails.map(({ raw }) => messageId(raw))).toEqual(expect.arrayContaining(swallowed))
    })
    await row.heals('as above', () => expect(tookMs).toBeLessThan(10_000 + slackMs))
  }),
  60_000,
)

it.concurrent(
  'an outage of a receiver, over a reload and a restart, is probed by a few alerts, and after it everything goes at no cost',
  sideBySide(async () => {
    const row = failureRow('One hangs, resets')
    const [prefix, sandbox, hook] = [freshPrefix(), await startSandbox(), await startWebhookReceiver()]
    const shown = showing(sandbox)
    let well = false
    const log = logOf('hook', hook, taken, () => (well ? undefined : { kind: 'broken', status: 200 }))
    const sinks = { hook: hook.url }
    let text = bridgeConfig({ redis, prefix, feed: sandbox.url, sinks, sink: patient })
    const load = () => parseConfig(text, { env: {}, folder: '/' })
    const tuning = long ? {} : { senderTuning: { probePauseMsMax: shortPauseMs } }
    const first = await startApp(text, { load, ...tuning })
    shown.fire(20)
    await until('it is down', () => isDown(first.lines, 'hook'))
    await until('every alert was tried', () => log.names.size === 20)
    const opened = hook.requests.length
    const after = (probes: number) => hook.received(hook.requests.length + probes, long ? 200_000 : 10_000)
    await after(long ? 16 : 7)
    const atReload = hook.requests.length
    text = text.replace(patient, `${patient}, headers: { x-new: "yes" }`)
    expect(await first.app.reload()).toEqual({ ok: true })
    await after(7)
    const tried = [...shown.ids.values()].map((id) => `main.${id}`)
    // A bridge that does not know of the outage sends them all at once.
    shown.fire(20)
    await until('others wait, and a pause runs', async () => {
      const [sink] = (await api<StatusView>(first.url, '/api/v1/status')).sinks
      return (sink?.waiting ?? 0) >= 15 && Boolean(sink?.nextProbeAt)
    })
    await first.app.stop()
    const atRestart = hook.requests.length
    const second = await startApp(text, tuning)
    await after(7)
    well = true
    const firstAnswer = hook.requests.length
    await until('everything arrives', () => hasAll(shown, log), long ? 70_000 : 10_000)
    const times = hook.requests.map(({ atMs }) => atMs)
    const spans = (probes: number, from: number, to: number) =>
      times.slice(from, to - probes).map((atMs, index) => (times[from + index + probes] ?? Number.NaN) - atMs)

    await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
    await row.twice('what it took without saying so', () =>
      expect(sentAgain(hook)).toEqual(expect.arrayContaining(tried)),
    )
    const [shortest, pauses] = [0.9 * (long ? 5_000 : shortPauseMs), long ? [5, 10, 20, 40, 60] : []]
    expect(Math.min(...spans(3, opened, atReload))).toBeGreaterThan(shortest)
    expect(new Set(hook.requests.slice(opened).map(({ body }) => body)).size).toBeGreaterThan(3)
    await row.inLong.heals(
      'in an outage three alerts probe it after 5 s, and three after each further pause, twice as long up to a minute',
      () => {
        // The pause runs from the last of the faults that it took; those that were on their way then came later.
        const rounds = [
          times[defaultTuning.faultsToOpen - 1] ?? 0,
          ...times.slice(opened, atReload).filter((_, index) => index % 3 === 0),
        ]
        const tookS = rounds
          .slice(1, pauses.length + 1)
          .map((atMs, index) => (atMs - (rounds[index] ?? 0)) / 1_000)
        for (const [index, pause] of pauses.entries()) {
          expect(tookS[index]).toBeGreaterThan(0.9 * pause)
          expect(tookS[index]).toBeLessThan(pause + slackMs / 1_000)
        }
      },
    )
    // The round that a reload falls into may begin anew.
    await row.heals('also over a reload', () =>
      expect(Math.min(...spans(6, atReload, atRestart))).toBeGreaterThan(long ? 54_000 : shortest),
    )
    await row.heals('after a restart the pause that runs is waited for, and the next is of 10 s', () => {
      expect(Math.min(...spans(6, atRestart, firstAnswer))).toBeGreaterThan(shortest)
      if (!long) return
      const [kept, , , next] = [0, 1, 2, 3].map(
        (place) => (times[atRestart + place] ?? Number.NaN) - (times[atRestart + place - 1] ?? Number.NaN),
      )
      expect(kept).toBeGreaterThan(54_000)
      expect(kept).toBeLessThan(60_000 + slackMs)
      expect(next).toBeGreaterThan(9_000)
      expect(next).toBeLessThan(10_000 + slackMs)
    })
    await row.heals(
      'after its first answer everything goes at once, at no cost to the attempts',
      async () => {
        expect((times.at(-1) ?? Number.NaN) - (times[firstAnswer] ?? 0)).toBeLessThan(slackMs)
        expect(hook.requests).toHaveLength(firstAnswer + shown.ids.size)
        // Burnt are those alone that the schedule had due by then, and the one that went well.
        const lastedMs = (times[firstAnswer] ?? 0) - (times[0] ?? 0)
        const due = duePauses(retryOf(text), lastedMs)
        expect(firstAnswer).toBeGreaterThan(40)
        const { data } = await api<{ data: { attempts: number }[] }>(
          second.url,
          '/api/v1/deliveries?limit=100',
        )
        expect(data).toHaveLength(shown.ids.size)
        expect(Math.max(...data.map(({ attempts }) => attempts))).toBeLessThanOrEqual(2 + due)
      },
    )
  }),
  long ? 600_000 : 60_000,
)

it.concurrent(
  'an alert that a receiver never acknowledges is tried by the whole schedule, a day long where the config names none, and is a dead letter then',
  sideBySide(async () => {
    const row = failureRow('One hangs, resets')
    const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
    hook.answerWith({ kind: 'broken', status: 200 })
    const shortened = { attempts: 11, initialDelayMs: 100, maxDelayMs: 500 }
    const sinkText = `${patient}, retry: { initialDelay: 100ms, maxDelay: 500ms }`
    const common = { redis, feed: sandbox.url, sinks: { hook: hook.url } }
    const { url } = await startApp(bridgeConfig({ ...common, sink: sinkText }))
    const { id } = sandbox.fire()
    const deadLetters = async () =>
      (await api<{ data: { id: number; reason: string }[] }>(url, '/api/v1/dead-letters')).data
    await until('it is given up', async () => (await deadLetters()).length > 0, 20_000)
    const triedAtMs = hook.requests.map(({ atMs }) => atMs)
    const waitedMs = triedAtMs.slice(1).map((atMs, index) => atMs - (triedAtMs[index] ?? 0))
    const usual = retryOf(bridgeConfig({ ...common, sink: patient }))
    await row.kept('it is tried for about 24 h, then it is a dead letter with the reason', async () => {
      expect(triedAtMs).toHaveLength(usual.attempts)
      expect(spanOf(usual).ms / hourMs).toBeCloseTo(24, 0)
      expect(await deadLetters()).toMatchObject([
        { id, reason: expect.stringMatching(/^attempts_exhausted: .*other side closed/) },
      ])
    })
    await row.twice('what it took without saying so', () => expect(sentAgain(hook)).toEqual([`main.${id}`]))
    await row.heals('the pause of the schedule: 5 s at first, 8 h at most', () => {
      for (const [index, pauseMs] of pausesMs(shortened).entries())
        expect(waitedMs[index]).toBeGreaterThan(0.75 * pauseMs)
      const pauses = pausesMs(usual)
      expect([pauses[0], Math.max(...pauses)]).toEqual([5_000, 8 * hourMs])
    })
  }),
  60_000,
)

it('a dead sink with 10,000 jobs waiting makes another no slower', { timeout: 90_000 }, async () => {
  const row = failureRow('One is dead and 10,000 alerts wait for it')
  const prefix = freshPrefix()
  const live = await startWebhookReceiver()
  const dead = await startWebhookReceiver({ answer: { kind: 'hang' } })
  const sandbox = await startSandbox()
  const text = bridgeConfig({
    ...{ redis, prefix, feed: sandbox.url, sinks: { live: live.url, dead: dead.url } },
    sink: 'allowPrivateNetworks: true, retry: { attempts: 100, initialDelay: 100ms, maxDelay: 1s }',
  }).replace(`"${dead.url}",`, '$& timeout: 500ms,')
  const { url } = await startApp(text)
  const client = redis.client()
  const queues = createQueues({ redis: client, prefix, sinks: ['live', 'dead'] })
  onTestFinished(() => queues.close())
  let id = 1
  const measure = async (): Promise<number> => {
    const tookMs: number[] = []
    for (let sample = 0; sample < 100; sample += 1) {
      const before = live.requests.length
      const startMs = performance.now()
      await queues.enqueue([deliveryJob('live', id++)])
      await live.received(before + 1)
      tookMs.push(performance.now() - startMs)
    }
    return tookMs.sort((a, b) => a - b)[94] ?? Number.NaN
  }
  await measure()
  const aloneMs = await measure()
  for (let from = 100_001; from < 110_001; from += 1_000) await queues.enqueue(jobs('dead', from, from + 999))
  await until('the dead sink is tried', () => dead.requests.length > 0)
  const asFastMs = aloneMs * 2 + 30
  // What else the machine does may slow one round down; a bridge that the dead sink slows down is slow in all.
  const roundsMs = [await measure()]
  while (Math.min(...roundsMs) >= asFastMs && roundsMs.length < 5) roundsMs.push(await measure())
  const { sinks } = await api<StatusView>(url, '/api/v1/status')
  const backlog = sinks.find(({ name }) => name === 'dead')
  process.stdout.write(
    `p95 alone ${aloneMs.toFixed(1)} ms, beside 10,000 waiting jobs ${roundsMs.map((ms) => ms.toFixed(1)).join(', ')} ms\n`,
  )
  await row.kept('everything', () => {
    expect(live.requests).toHaveLength(id - 1)
    // Those that are being sent do not wait.
    expect((backlog?.waiting ?? 0) + (backlog?.delayed ?? 0)).toBeGreaterThan(9_900)
    expect((backlog?.waiting ?? 0) + (backlog?.delayed ?? 0) + (backlog?.active ?? 0)).toBe(10_000)
  })
  await row.twice('nothing', () => expect(sentAgain(live)).toEqual([]))
  await row.heals('the others are as fast as before', () =>
    expect(Math.min(...roundsMs)).toBeLessThan(asFastMs),
  )
})

/**
 * Lets each sink be well once the bridge knows that it is down, or asks for patience; returns how long each needed from
 * then on until it had everything.
 */
async function heal(
  lines: StartedApp['lines'],
  shown: Shown,
  logs: readonly SinkLog[],
  mend: (name: string) => unknown,
): Promise<ReadonlyMap<string, number>> {
  const nowMs = ownTime()
  const healedAtMs = new Map<string, number>()
  const tookMs = new Map<string, number>()
  await until(
    'each is down, and well again',
    async () => {
      for (const log of logs) {
        // A sink that asks for patience is not down.
        const asks = log.name.includes('429') && log.attempts() >= shown.ids.size
        if (!healedAtMs.has(log.name) && (asks || isDown(lines, log.name) || hasAll(shown, log))) {
          await mend(log.name)
          healedAtMs.set(log.name, nowMs())
        }
        const healedMs = healedAtMs.get(log.name)
        if (healedMs !== undefined && !tookMs.has(log.name) && hasAll(shown, log))
          tookMs.set(log.name, nowMs() - healedMs)
      }
      return tookMs.size === logs.length
    },
    40_000,
  )
  return tookMs
}

/**
 * Of each sink, how often the bridge waited in vain for the answer about a mark. A receiver may still take what was sent, and
 * it does so in this process, where a busy machine makes it late.
 */
async function lateAnswers(url: string, shown: Shown): Promise<Map<string, Map<string, number>>> {
  const late = new Map<string, Map<string, number>>()
  for (const [mark, id] of shown.ids) {
    const { data } = await api<{ data: AlertStory }>(url, `/api/v1/deliveries/main/${id}`)
    for (const { sink, attempts } of data.deliveries) {
      const times = attempts.filter(({ reason }) => reason === 'timeout').length
      if (times > 0) late.set(sink, (late.get(sink) ?? new Map<string, number>()).set(mark, times))
    }
  }
  return late
}

/** Whether the bridge has found the sink to be down, by its log. */
function isDown(lines: StartedApp['lines'], name: string): boolean {
  return lines.some(({ msg, sink, state }) => msg === 'delivery.breaker' && sink === name && state === 'open')
}

/** How many pauses of this schedule may be over after this time. */
function duePauses(retry: RetryPolicy, lastedMs: number): number {
  const pauses = pausesMs(retry)
  const ends = pauses.map((_, index) => 0.8 * pauses.slice(0, index + 1).reduce((sum, each) => sum + each, 0))
  return ends.filter((endMs) => endMs <= lastedMs).length
}

/** The schedule of the only sink of this config. */
function retryOf(text: string): RetryPolicy {
  const [sink] = Object.values(configOf(text).sinks)
  if (sink === undefined) throw new Error('no sink')
  const { attempts, initialDelay, maxDelay } = sink.retry
  return { attempts, initialDelayMs: initialDelay, maxDelayMs: maxDelay }
}

async function deadMarks(url: string, shown: Shown, reasonPattern: RegExp): Promise<Set<string>> {
  const read = () =>
    api<{ data: { headline: string; reason: string; sink: string }[] }>(url, '/api/v1/dead-letters')
  await until('all are given up', async () => (await read()).data.length === shown.ids.size)
  const { data } = await read()
  for (const { reason, sink } of data)
    expect([sink, reason]).toEqual([refusing, expect.stringMatching(reasonPattern)])
  return new Set(data.flatMap(({ headline }) => /A\d{5}/.exec(headline)?.[0] ?? []))
}

function messageId(raw: string): string {
  return /^Message-ID: *(\S+)/im.exec(raw)?.[1] ?? 'none'
}

/** A resolver that does not know the name until it is mended; then it is this machine. */
function failNames(name: string): { mend(): void } {
  const real = dns.lookup
  let known = false
  const lookup = async (host: string, options: object) => {
    if (host !== name) return real(host, options)
    if (!known) throw Object.assign(new Error(`getaddrinfo EAI_AGAIN ${host}`), { code: 'EAI_AGAIN' })
    return [{ address: '127.0.0.1', family: 4 }]
  }
  Object.assign(dns, { lookup })
  onTestFinished(() => {
    Object.assign(dns, { lookup: real })
  })
  return {
    mend() {
      known = true
    },
  }
}

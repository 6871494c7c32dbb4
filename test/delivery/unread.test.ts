import { expect, it } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { breakerKey } from '../../src/store/keys.ts'
import { onTestFinished } from '../support/finished.ts'
import { type RawBehaviour, startRawServer } from '../support/raw-server.ts'
import { useRedis } from '../support/redis.ts'
import { type SmtpScript, startSmtpReceiver } from '../support/smtp-receiver.ts'
import { delivered, deliveryJob, jobs, rig, testSink, until } from './rig.ts'

const server = useRedis()

it.each([
  [
    'nobody ends the handshake of TLS',
    { kind: 'hang' },
    (port: number) => webhook(`https://127.0.0.1:${port}/`),
  ],
  ['a proxy opens no tunnel and refuses none', { kind: 'hang' }, (port: number) => webhook(away, port)],
  [
    'a proxy that is to pass a request on refuses its login',
    { kind: 'say', after: 'request', first: 'HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n' },
    (port: number) => webhook('http://receiver.example/', port),
  ],
  [
    'the file of its secret is gone',
    { kind: 'hang' },
    (port: number) => ({ ...webhook(`http://127.0.0.1:${port}/`), secret: Secret.fromFile('/nowhere') }),
  ],
  ['Slack ends each connection', { kind: 'reset', after: 'connect' }, (port: number) => slack(port)],
  ['a mail server greets nobody', { kind: 'hang' }, (port: number) => mail(port)],
  ['a mail server ends each connection', { kind: 'reset', after: 'connect' }, (port: number) => mail(port)],
] as const)(
  'one alert shows that a receiver is down where %s, so that nothing of it was sent',
  async (_, behaviour, own) => {
    const { sender } = await oneAlert(own(await rawPort(behaviour)))
    await until('a rest', () => sender.states()[0]?.breaker === 'open')
  },
)

it.each([
  ['a webhook that had it', async () => webhook(`http://127.0.0.1:${await rawPort({ kind: 'hang' })}/`)],
  ['a mail server that was told of its recipient', () => silentMail({ rcptTo: () => 'hang' })],
  ['a mail server that had it', () => silentMail({ data: () => 'hang' })],
] as const)(
  'one alert shows nothing where no answer comes of %s, since that may be about the alert',
  async (_, own) => {
    // Long enough for each attempt to come so far.
    const config = { ...(await own()), timeout: '1s' }
    const { sender, queue } = await oneAlert(config, 1_000)
    await until('given up on', async () => (await queue.getFailedCount()) === 1)
    expect(sender.states()[0]?.breaker).toBe('closed')
  },
)

it('attempts of one alert show that nobody listens, though processes shared them or were started anew between them', async () => {
  const { queues, sender } = rig(server, ['desk'])
  const sink = testSink('desk', () => unreached)
  const retry = { attempts: 6, initialDelayMs: 100, maxDelayMs: 1_000 }
  const setup = { settings: { retry }, tuning: { faultsToOpen: 5 } }
  const first = sender([sink], setup)
  await queues.enqueue([deliveryJob('desk', 1)])
  await until('three attempts', () => sink.sends.length === 3)
  await first.stop()
  const next = sender([sink], setup)
  await until('a rest', () => next.states()[0]?.breaker === 'open')
})

it('a sink that one process knows to be down is back for it, too, where another sends the only alert', async () => {
  const { queues, sender, redis, prefix } = rig(server, ['desk'])
  const [cut, whole] = [testSink('desk', () => unreached), testSink('desk', () => nothingSaid)]
  const retry = { attempts: 100, initialDelayMs: 20, maxDelayMs: 20 }
  const tuning = { faultsToOpen: 3, probePauseMsMax: 100, watchEveryMs: 50 }
  const [knows, sends] = [cut, whole].map((each) => sender([each], { settings: { retry }, tuning }))
  await queues.enqueue([deliveryJob('desk', 1)])
  await until('a rest', () => knows?.states()[0]?.breaker === 'open')
  whole.answer = () => delivered
  await until('delivered', async () => (await queues.queue('desk').getCompletedCount()) === 1)
  expect(sends?.states()[0]?.breaker).toBe('closed')
  await until('it is known to be back', () => knows?.states()[0]?.breaker === 'closed')
  expect(await redis.exists(breakerKey(prefix, 'desk'))).toBe(0)
})

it.each([
  [
    'refuses its login for good',
    'credentials: 401 no',
    { kind: 'dead', reason: 'credentials', sinkFault: true },
  ],
  ['has spent a quota', 'rate_limited: 401 no', { kind: 'retry', reason: 'rate_limited', sinkFault: false }],
] as const)(
  'a sink that was down, and now %s, goes on resting for what it says now, so that few alerts go to it in vain',
  async (_, reason, what) => {
    const { queues, sender } = rig(server, ['desk'])
    const sink = testSink('desk', () => unreached)
    const running = sender([sink], { tuning: { faultsToOpen: 2, probesARound: 2 } })
    const reasonNow = () => running.states()[0]?.reason
    await queues.enqueue(jobs('desk', 1, 30))
    await until('a rest', () => reasonNow() === 'connect: refused')
    await until('what was on its way has ended', () => running.states()[0]?.sending === 0)
    const from = sink.sends.length
    sink.answer = () => ({ ...what, answer: { status: 401, text: 'no' } })
    await until('its answer is said', () => reasonNow() === reason)
    const { heldUntilMs = 0 } = running.states()[0] ?? {}
    expect(running.states()).toMatchObject([{ breaker: 'open', lastFault: { text: reason } }])
    expect(sink.sends.length - from).toBeLessThanOrEqual(2)
    await until('a longer rest', () => (running.states()[0]?.heldUntilMs ?? 0) > heldUntilMs)
    sink.answer = () => delivered
    await until('it is back', () => running.states()[0]?.breaker === 'closed')
  },
)

/** Says nothing of the sink either way. */
const nothingSaid: Outcome = { kind: 'retry', reason: 'aborted', sinkFault: false, answer: { text: '' } }

const unreached: Outcome = {
  kind: 'retry',
  reason: 'connect',
  sinkFault: true,
  unread: true,
  answer: { text: 'refused' },
}

const away = 'https://receiver.example/'
const common = { timeout: '200ms', allowPrivateNetworks: true } as const

const webhook = (url: string, proxyPort?: number) => ({
  type: 'webhook',
  url,
  ...(proxyPort === undefined ? {} : { proxy: `http://127.0.0.1:${proxyPort}` }),
  ...common,
})

const slack = (port: number) => ({
  type: 'slack',
  url: `https://127.0.0.1:${port}/services/T/B/x`,
  ...common,
})

const mail = (port: number) => ({
  type: 'email',
  smtp: `smtp://127.0.0.1:${port}`,
  from: 'alerts@example.com',
  to: ['desk@example.com'],
  ...common,
})

async function silentMail(script: SmtpScript) {
  const smtp = await startSmtpReceiver()
  onTestFinished(() => smtp.stop())
  smtp.script(script)
  return mail(smtp.port)
}

async function rawPort(behaviour: RawBehaviour): Promise<number> {
  const host = await startRawServer(behaviour)
  onTestFinished(() => host.stop())
  return host.port
}

/** A sink of that config and a single alert that it is to get, in attempts that follow each other at once. */
async function oneAlert(config: { readonly type: string }, timeoutMs = 200) {
  const { queues, sender } = rig(server, ['desk'])
  const sink = createSink('desk', sinkConfigSchema.parse(config), {
    display: { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' },
  })
  onTestFinished(() => sink.close())
  const [target] = sink.targets
  await queues.enqueue([deliveryJob('desk', 1, target === undefined ? {} : { target })])
  const retry = { attempts: 3, initialDelayMs: 20, maxDelayMs: 20 }
  const running = sender([sink], { settings: { retry, timeoutMs }, tuning: { faultsToOpen: 3 } })
  return { sender: running, queue: queues.queue('desk') }
}

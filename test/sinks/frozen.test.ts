import { expect, test } from 'vitest'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { failureRow } from '../support/failure-row.ts'
import { onTestFinished } from '../support/finished.ts'
import { httpThread, standStill, startThreadServer } from '../support/thread-server.ts'
import { englishDisplay, persian } from './samples.ts'

const timeoutMs = 2_000
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

const smtp = `
const { createServer } = require('node:net')
const { createInterface } = require('node:readline')
const { parentPort } = require('node:worker_threads')
const server = createServer((socket) => {
  const say = (text) => socket.write(text + '\\r\\n')
  let inBody = false
  socket.on('error', () => {})
  say('220 hello')
  createInterface(socket).on('line', (line) => {
    if (inBody && line !== '.') return
    if (inBody) {
      parentPort.postMessage('came')
      setTimeout(() => say('250 queued'), 200)
    } else say(line === 'DATA' ? '354 go on' : '250 ok')
    inBody = line === 'DATA'
  })
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

test.for([
  ['webhook', httpThread, (port: number) => ({ secret, url: `http://127.0.0.1:${port}/` })],
  [
    'email',
    smtp,
    (port: number) => ({
      smtp: `smtp://127.0.0.1:${port}`,
      from: 'alerts@example.com',
      to: ['desk@example.com'],
    }),
  ],
] as const)(
  '%s: an answer that came while the process stood still counts, however long that was',
  async ([type, code, fields]) => {
    const row = failureRow('It is frozen')
    const receiver = await startThreadServer(code, { status: 204 })
    const common = { type, timeout: `${timeoutMs}ms`, allowPrivateNetworks: true }
    const config = sinkConfigSchema.parse({ ...common, ...fields(receiver.port) })
    const sink = createSink('desk', config, { display: englishDisplay })
    onTestFinished(() => sink.close())
    const came = receiver.nextRequest()
    const signal = new AbortController().signal
    const [target] = sink.targets ?? []
    const attempt = { number: 1, nowMs: Date.now(), signal, ...(target === undefined ? {} : { target }) }
    const sending = sink.send(persian, attempt)
    await came
    standStill(1.25 * timeoutMs)
    const goesOnMs = performance.now()
    await row.kept('everything: an answer counts, however late it is read', async () =>
      expect(await sending).toMatchObject({ kind: 'delivered' }),
    )
    await row.heals('at once, when it goes on', () =>
      expect(performance.now() - goesOnMs).toBeLessThan(timeoutMs),
    )
    await row.twice('nothing', () => expect(receiver.requests()).toBe(1))
  },
)

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { onTestFinished } from '../support/finished.ts'
import { englishDisplay, persian } from './samples.ts'

const timeoutMs = 1_000

test('an answer that came while the process stood still counts, however long that was', async () => {
  // A thread of its own answers while this one stands still.
  const receiver = new Worker(receiverCode, { eval: true })
  onTestFinished(async () => void (await receiver.terminate()))
  const [port] = await once(receiver, 'message')
  const common = { url: `http://127.0.0.1:${port}/`, timeout: `${timeoutMs}ms`, allowPrivateNetworks: true }
  const config = sinkConfigSchema.parse({
    type: 'webhook',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ...common,
  })
  const sink = createSink('desk', config, { display: englishDisplay })
  onTestFinished(() => sink.close())
  const came = once(receiver, 'message')
  const sending = sink.send(persian, { number: 1, nowMs: Date.now(), signal: new AbortController().signal })
  await came
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * timeoutMs)
  expect(await sending).toMatchObject({ kind: 'delivered' })
})

const receiverCode = `
const { createServer } = require('node:http')
const { parentPort } = require('node:worker_threads')
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    parentPort.postMessage('came')
    setTimeout(() => response.writeHead(204).end(), 200)
  })
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

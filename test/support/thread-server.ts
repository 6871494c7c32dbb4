import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { onTestFinished } from './finished.ts'

/** A server in a thread of its own, which answers also while the test's thread stands still. */
export interface ThreadServer {
  readonly port: number
  /** Requests so far; `nextRequest` resolves as the next one comes. */
  requests(): number
  nextRequest(): Promise<unknown>
}

/** `code` posts its port to its parent first, and then a message for each request. */
export async function startThreadServer(code: string, workerData: object = {}): Promise<ThreadServer> {
  const thread = new Worker(code, { eval: true, workerData })
  onTestFinished(async () => void (await thread.terminate()))
  const [port] = await once(thread, 'message')
  let requests = 0
  thread.on('message', () => (requests += 1))
  return { port, requests: () => requests, nextRequest: () => once(thread, 'message') }
}

/** Answers each request after 200 ms, with the `status` and the `body` of its `workerData`. */
export const httpThread = `
const { createServer } = require('node:http')
const { parentPort, workerData: { status, body } } = require('node:worker_threads')
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    parentPort.postMessage('came')
    setTimeout(() => response.writeHead(status, { 'content-type': 'application/json' }).end(body), 200)
  })
}).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

/** No timer runs and no socket is read in this thread meanwhile. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { give, type ReceiverAnswer } from '../../support/webhook-receiver.ts'

/** A webhook receiver that keeps of each request only whose it was: a day of them fits into memory. */
export interface CountingReceiver {
  readonly url: string
  /** How often each alert was acknowledged, by `webhook-id`. */
  readonly acknowledged: ReadonlyMap<string, number>
  answerWith(answer: ReceiverAnswer): void
  stop(): void
}

export async function startCountingReceiver(): Promise<CountingReceiver> {
  const acknowledged = new Map<string, number>()
  let answer: ReceiverAnswer = { status: 204 }
  const server = createServer((request, response) => {
    request.resume()
    request.on('error', () => {})
    request.on('end', () => {
      const id = String(request.headers['webhook-id'])
      const current = answer
      if ('status' in current && current.status === 204) acknowledged.set(id, (acknowledged.get(id) ?? 0) + 1)
      give(response, current)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    acknowledged,
    answerWith(next) {
      answer = next
    },
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

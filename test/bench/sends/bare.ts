import { createHmac, createSecretKey } from 'node:crypto'
import { type Processor, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { Agent } from 'undici'
import { prefix, sinks, width } from './work.ts'

/**
 * What the libraries alone reach: a bare BullMQ worker a queue (`queue`), a bare undici post with one HMAC over its body
 * (`post`), and both (`both`). Keeps no story, retries nothing, and sends again what a kill interrupted.
 */
const [kind, socket = '', receiver = '', count = '0', row = '{}', queues = prefix] = process.argv.slice(2)
const agent = new Agent({ connections: width, pipelining: 1 })
const key = createSecretKey(Buffer.alloc(32, 1))

async function post(id: string, data: { source: string; row: unknown }, sink: string): Promise<void> {
  const body = JSON.stringify({
    type: 'alert.fired',
    timestamp: '',
    data: { source: data.source, delivery: data.row },
  })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const response = await agent.request({
    origin: receiver,
    path: `/${sink}`,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  })
  await response.body.dump()
  if (response.statusCode !== 204) throw new Error(`answered ${response.statusCode}`)
}

if (kind === 'post') {
  const sent = JSON.parse(row) as object
  const each = Number(count)
  await Promise.all(
    sinks.flatMap((sink) => {
      let left = each
      return Array.from({ length: width }, async () => {
        while (left-- > 0) await post(`main.${left}`, { source: 'main', row: sent }, sink)
      })
    }),
  )
  await agent.close()
} else {
  const wanted = Number(count) * sinks.length
  let done = 0
  const startedAt: number[] = []
  const work: Processor = async (job) => {
    if (kind === 'both') await post(job.id ?? '', job.data, job.queueName)
    else {
      startedAt.push(performance.now())
      done += 1
      if (done === Math.floor(wanted / 10)) process.send?.({ warm: true })
      if (done === wanted) tell()
    }
  }
  const tell = () => {
    const first = Math.floor(done / 10)
    const seconds = ((startedAt.at(-1) ?? 0) - (startedAt[first] ?? 0)) / 1_000
    process.send?.({ perSecond: (done - first - 1) / seconds, sends: done - first })
  }
  for (const sink of sinks) {
    const connection = new Redis({ path: socket, maxRetriesPerRequest: null })
    new Worker(sink, work, { connection, prefix: `{${queues}}:queue`, concurrency: width })
  }
}

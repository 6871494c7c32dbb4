import { createServer } from 'node:http'

/** Answers every POST with 204, and on request says when the n-th of them was answered. Started by `sends.ts` as a process of its own. */
let times: number[] = []
const server = createServer({ keepAlive: true, keepAliveTimeout: 30_000 }, (request, response) => {
  request.resume()
  request.on('end', () => {
    response.writeHead(204).end()
    times.push(performance.now())
    if (times.length === Math.floor(wanted / 10)) process.send?.({ warm: true })
    if (times.length === wanted) tell()
  })
})
let wanted = 0

process.on('message', (message: { count: number }) => {
  times = []
  wanted = message.count
  process.send?.({ ready: true })
})

/** Over the last nine tenths: what has to start and to connect first is left out. */
function tell(): void {
  const first = Math.floor(wanted / 10)
  const seconds = ((times.at(-1) ?? 0) - (times[first] ?? 0)) / 1_000
  process.send?.({ perSecond: (wanted - first - 1) / seconds, sends: wanted - first })
}

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }))

import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from './finished.ts'

/** A way to Redis that can be shut: whoever comes by it is cut off, and Redis goes on. */
export async function startDoor(socketPath: string) {
  const path = `${socketPath}.door`
  const sockets = new Set<Socket>()
  const answers = new Set<Socket>()
  let isOpen = true
  const server = createServer((near) => {
    if (!isOpen) return void near.destroy()
    const far = connect(socketPath)
    answers.add(far)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {}).on('close', () => to.destroy())
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  onTestFinished(() => void server.close())
  return {
    url: `unix://${path}`,
    close() {
      isOpen = false
      for (const socket of sockets) socket.destroy()
    },
    /** Redis gets what is sent, and what it answers waits here. */
    hold() {
      for (const far of answers) far.pause()
    },
    release() {
      for (const far of answers) far.resume()
    },
    open: async () => {
      isOpen = true
    },
  }
}

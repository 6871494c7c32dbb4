import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const usual: Readonly<Record<string, string>> = {
  connect: '220 hello',
  EHLO: '250 AUTH LOGIN',
  AUTH: '334 VXNlcm5hbWU6',
  DATA: '354 go on',
  body: '250 queued',
  QUIT: '221 bye',
}

/** An SMTP server that may break the protocol: it answers each command as it is told (nothing for ''), and 250 without. */
export async function startBareSmtp(answers: Readonly<Record<string, string>>) {
  const answerTo = (command: string) => answers[command] ?? usual[command] ?? '250 ok'
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    const say = (text: string) => void (text === '' || socket.write(`${text}\r\n`))
    let inBody = false
    let loginLines = 0
    socket.on('error', () => {})
    say(answerTo('connect'))
    createInterface(socket).on('line', (line) => {
      if (inBody) {
        if (line !== '.') return
        inBody = false
        return say(answerTo('body'))
      }
      if (loginLines > 0) {
        loginLines -= 1
        return say(loginLines > 0 ? '334 UGFzc3dvcmQ6' : '235 welcome')
      }
      const command = line.split(' ')[0] ?? ''
      const answer = answerTo(command)
      inBody = command === 'DATA'
      if (command === 'AUTH' && answer.startsWith('334')) loginLines = 2
      say(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections that are open now. */
    open: () => sockets.size,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

import { createInterface } from 'node:readline'
import { type Readable, Writable } from 'node:stream'
import { UserError } from '../../lib/errors.ts'

/** Asks a person, a line an answer. What is typed to a hidden question is not shown. */
export interface Terminal {
  ask(question: string, options?: { readonly hidden?: boolean }): Promise<string>
  /** Rejects at Ctrl-C, also where nothing is being asked. */
  readonly interrupted: Promise<never>
  close(): void
}

/** On the terminal of this process, or undefined where there is none: then nothing can be asked. */
export function openTerminal(): Terminal | undefined {
  // Questions go to stderr, so that stdout has the result alone.
  return process.stdin.isTTY ? createTerminal(process.stdin, process.stderr, true) : undefined
}

export function createTerminal(input: Readable, output: Writable, isTerminal: boolean): Terminal {
  // Only while an answer that may be seen is typed: what comes before its question may answer a hidden one.
  let visible = false
  const shown = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (visible) output.write(chunk)
      done()
    },
  })
  const lines = createInterface({ input, output: shown, terminal: isTerminal })
  // Lines that come before they are asked for (pasted, or from a pipe) are kept.
  const typed: string[] = []
  let waiting: { take(line: string): void; stop(): void } | undefined
  let closed = false
  const interruption = Promise.withResolvers<never>()
  interruption.promise.catch(() => {})
  lines.on('SIGINT', () => {
    interruption.reject(stopped())
    lines.close()
  })
  lines.on('line', (line) => {
    const asked = waiting
    visible = false
    // At once: the next line may come before the question has its answer.
    waiting = undefined
    if (asked) asked.take(line)
    else typed.push(line)
  })
  lines.on('close', () => {
    closed = true
    waiting?.stop()
  })
  const nextLine = () =>
    new Promise<string>((resolve, reject) => {
      const line = typed.shift()
      const stop = () => reject(stopped())
      if (line !== undefined) resolve(line)
      else if (closed) stop()
      else waiting = { take: resolve, stop }
    })
  return {
    interrupted: interruption.promise,
    async ask(question, options = {}) {
      const [early] = typed
      const { hidden = false } = options
      visible = !hidden
      lines.setPrompt(`${question}: `)
      // The prompt of readline shows what the next answer has so far, and goes on behind it.
      if (hidden || closed || early !== undefined) output.write(`${question}: `)
      else lines.prompt(true)
      try {
        const line = await nextLine()
        if (!hidden && early !== undefined) output.write(`${line}\n`)
        return line.trim()
      } finally {
        if (hidden) output.write('\n')
        visible = false
      }
    },
    close: () => lines.close(),
  }
}

const stopped = () => new UserError('Stopped. Nothing was written.')

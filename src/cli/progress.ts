import { formatCount } from '../admin/page/times.ts'

/** Shows how far a long command is, in one line on stderr that is written over; nothing when stderr is no terminal. */
export interface ProgressBar {
  show(done: number, total: number): void
  /** Removes the line. */
  end(): void
}

export function progressBar(label: string, stream: NodeJS.WriteStream = process.stderr): ProgressBar {
  if (!stream.isTTY) return { show() {}, end() {} }
  return {
    show(done, total) {
      const part = total === 0 ? 1 : Math.min(1, done / total)
      const filled = Math.round(part * barWidth)
      const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
      stream.write(`\r\x1b[K${label} ${bar} ${formatCount(Math.min(done, total))} of ${formatCount(total)}`)
    },
    end() {
      stream.write('\r\x1b[K')
    },
  }
}

const barWidth = 24

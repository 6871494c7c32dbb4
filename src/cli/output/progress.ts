import { formatCount } from '../../admin/page/words/en.ts'
import { printable } from '../../telemetry/printable.ts'

/** Shows how far a long command is, in one line on stderr that is written over; nothing when stderr is no terminal. */
interface ProgressBar {
  /** `after` goes in the place of the counts. */
  show(done: number, total: number, after?: string): void
  /** Removes the line. */
  end(): void
}

export function progressBar(label: string, stream: NodeJS.WriteStream = process.stderr): ProgressBar {
  if (!stream.isTTY) return { show() {}, end() {} }
  return {
    show(done, total, after) {
      const part = total === 0 ? 1 : Math.min(1, done / total)
      const filled = Math.round(part * barWidth)
      const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
      const counts = after ?? `${formatCount(Math.min(done, total))} of ${formatCount(total)}`
      stream.write(`\r\x1b[K${printable(`${label} ${bar} ${counts}`)}`)
    },
    end() {
      stream.write('\r\x1b[K')
    },
  }
}

const barWidth = 24

import type { Display } from './display.ts'

/** The few words that messages are made of, in the reader's language. */
export interface Words {
  readonly symbol: string
  readonly kind: string
  readonly fired: string
  readonly why: string
  readonly rules: string
  readonly open: string
  readonly source: string
}

export function wordsOf(display: Display): Words {
  return words[display.language]
}

/** How many alerts like this one were held back before it; undefined where none was. */
export function heldBackText(count: number, display: Display): string | undefined {
  if (count <= 0) return undefined
  return display.language === 'fa'
    ? `${count.toLocaleString('fa-IR')} هشدار دیگر نگه داشته شد`
    : `${count.toLocaleString('en-US')} more held back`
}

/** `12 alerts`, in the reader's digits. */
export function countText(count: number, display: Display): string {
  if (display.language === 'fa') return `${count.toLocaleString('fa-IR')} هشدار`
  return count === 1 ? '1 alert' : `${count.toLocaleString('en-US')} alerts`
}

const words: Readonly<Record<Display['language'], Words>> = {
  en: {
    symbol: 'Symbol',
    kind: 'Kind',
    fired: 'Fired',
    why: 'Why',
    rules: 'Rules',
    open: 'Open the alert',
    source: 'Source',
  },
  fa: {
    symbol: 'نماد',
    kind: 'نوع',
    fired: 'زمان',
    why: 'چرا',
    rules: 'قاعده‌ها',
    open: 'دیدن هشدار',
    source: 'منبع',
  },
}

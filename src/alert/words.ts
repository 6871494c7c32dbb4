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

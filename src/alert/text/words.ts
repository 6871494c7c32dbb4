import type { Display } from './display.ts'

/** The few words that messages are made of, in the reader's language. */
interface Words {
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

/** The words of an alert's context. */
interface ContextWords {
  readonly last: string
  readonly change: string
  readonly sessions: string
  readonly unusual: string
  readonly letter: string
  readonly months: string
  readonly holders: string
  readonly valuation: string
  readonly macro: string
  readonly market: string
}

export function contextWordsOf(display: Display): ContextWords {
  return contextWords[display.language]
}

/** A price chart in words, for those who cannot see it. */
export function chartText(
  { language }: Display,
  { symbol, count, range }: { readonly symbol: string; readonly count: string; readonly range: string },
): string {
  return language === 'fa'
    ? `نمودار قیمت ${symbol}: ${count}، ${range}`.replace(' :', ':')
    : `Price chart of ${symbol}: ${count}, ${range}`.replace(' of :', ':')
}

/** A unit that the API names, in the reader's language; others as they came. */
export function unitWord(unit: string, display: Display): string {
  return (display.language === 'fa' ? persianUnits.get(unit.toLowerCase()) : undefined) ?? unit
}

const persianUnits = new Map([
  ['rial', 'ریال'],
  ['toman', 'تومان'],
  ['usd', 'دلار'],
  ['percent', 'درصد'],
  ['index', 'شاخص'],
])

const contextWords: Readonly<Record<Display['language'], ContextWords>> = {
  en: {
    last: 'Last price',
    change: 'change',
    sessions: 'sessions',
    unusual: 'Unusual readings',
    letter: 'Latest letter',
    months: 'months',
    holders: 'Holders',
    valuation: 'Valuation gap',
    macro: 'Macro',
    market: 'Market',
  },
  fa: {
    last: 'آخرین قیمت',
    change: 'تغییر',
    sessions: 'جلسه',
    unusual: 'شاخص نامعمول',
    letter: 'آخرین اطلاعیه',
    months: 'ماهه',
    holders: 'سهامداران',
    valuation: 'فاصله از ارزش',
    macro: 'کلان',
    market: 'بازار',
  },
}

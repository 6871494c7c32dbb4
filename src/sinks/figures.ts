import type { ReadingNames } from '../alert/context.ts'
import type { Display } from '../alert/display.ts'
import { readText } from '../alert/readings.ts'
import { cut, oneLine } from '../alert/text.ts'
import { unitWord } from '../alert/words.ts'

/** Figures of an alert's context in the reader's digits. One whose unit is not known has none: rial and toman differ by ten. */
export function numberText(value: number, display: Display): string {
  return value.toLocaleString(localeOf(display), { maximumSignificantDigits: 15 })
}

export function signedText(value: number, display: Display): string {
  return value.toLocaleString(localeOf(display), { maximumFractionDigits: 2, signDisplay: 'exceptZero' })
}

export function percentText(
  percent: number,
  display: Display,
  signDisplay: 'exceptZero' | 'auto' = 'exceptZero',
): string {
  const options = { style: 'percent', maximumFractionDigits: 2, signDisplay } as const
  return (percent / 100).toLocaleString(localeOf(display), options)
}

export function withUnit(text: string, record: unknown, names: ReadingNames, display: Display): string {
  const unit = readText(record, 'unit', names)
  return unit === undefined ? text : `${text} ${unitWord(cut(oneLine(unit), unitCharsMax), display)}`
}

export function localeOf({ language }: Display): string {
  return language === 'fa' ? 'fa-IR' : 'en-US'
}

const unitCharsMax = 24

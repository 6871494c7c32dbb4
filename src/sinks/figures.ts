import type { ReadingNames } from '../alert/context.ts'
import { readText } from '../alert/readings.ts'
import { type Display, displayDirection } from '../alert/text/display.ts'
import { closed, cut, oneLine } from '../alert/text/text.ts'
import { unitWord } from '../alert/text/words.ts'

/** Figures of an alert's context in the reader's digits. One whose unit is not known has none: rial and toman differ by ten. */
export function numberText(value: number, display: Display): string {
  return formatted(value, display, { maximumSignificantDigits: 15 })
}

export function roundedText(
  value: number,
  display: Display,
  signDisplay: 'exceptZero' | 'auto' = 'auto',
): string {
  return formatted(value, display, { ...rounding, signDisplay })
}

/** Two digits after the point; of a figure that would then have fewer than three significant digits, those three. */
const rounding = {
  maximumFractionDigits: 2,
  maximumSignificantDigits: 3,
  roundingPriority: 'morePrecision',
} as const

export function percentText(
  percent: number,
  display: Display,
  signDisplay: 'exceptZero' | 'auto' = 'exceptZero',
): string {
  return formatted(percent / 100, display, { style: 'percent', maximumFractionDigits: 2, signDisplay })
}

export function withUnit(text: string, record: unknown, names: ReadingNames, display: Display): string {
  const unit = readText(record, 'unit', names)
  if (unit === undefined) return text
  return `${text} ${closed(unitWord(cut(oneLine(unit), unitCharsMax), display), displayDirection(display))}`
}

export function formatted(value: number, { language }: Display, options: Intl.NumberFormatOptions): string {
  const key = `${language} ${JSON.stringify(options)}`
  const format = formats.get(key) ?? new Intl.NumberFormat(language === 'fa' ? 'fa-IR' : 'en-US', options)
  formats.set(key, format)
  return format.format(value)
}

/** Formats are slow to make and few: of two languages, and of the digits of a chart's prices. */
const formats = new Map<string, Intl.NumberFormat>()

const unitCharsMax = 24

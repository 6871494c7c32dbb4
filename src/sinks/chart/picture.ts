import type { Display } from '../../alert/text/display.ts'
import type { Parcel } from '../sink.ts'
import type { Drawer } from './drawer.ts'
import { chartFigure } from './figure.ts'
import { type ChartTheme, chartHeight, chartSvg, chartWidth } from './svg.ts'

/** A chart as a message carries it. */
export interface Picture {
  readonly png: Uint8Array
  readonly alt: string
  /** In points, not in the pixels of its file. */
  readonly width: number
  readonly height: number
}

interface PictureTools {
  readonly display: Display
  readonly drawer?: Pick<Drawer, 'draw'>
}

interface PictureOptions {
  readonly theme: ChartTheme
  /** Of the attempt. */
  readonly timeoutMs: number
  /** Which attempt it is, from 1. */
  readonly attempt: number
}

/** Of the attempt: a message goes out without its chart where that takes longer. */
const timeoutShare = 0.25
/** What failed so often may have failed because of the chart: on a slow connection, or at a receiver that breaks on it. */
const attemptsMax = 2

/** The price chart of an alert; undefined where its context has none, or it cannot be drawn in time, or sent. */
export async function pictureOf(
  parcel: Parcel,
  { display, drawer }: PictureTools,
  { theme, timeoutMs, attempt }: PictureOptions,
): Promise<Picture | undefined> {
  if (drawer === undefined || attempt > attemptsMax) return undefined
  const figure = chartFigure(parcel, display)
  if (figure === undefined) return undefined
  const png = await drawer.draw(chartSvg(figure, theme), timeoutMs * timeoutShare)
  return png && { png, alt: figure.alt, width: chartWidth, height: chartHeight }
}

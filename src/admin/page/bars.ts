import { type Html, html } from '../../alert/text/html.ts'
import type { SinkActivity } from '../../delivery/records/activity.ts'
import type { PageWords } from './words/en.ts'

/** A bar an hour: what was acknowledged, and on it what was given up on. The tallest hour fills the height. */
export function hourBars({ hours }: SinkActivity, words: PageWords): Html {
  const most = Math.max(1, ...hours.map(({ delivered, dead }) => delivered + dead))
  const sum = (kind: 'delivered' | 'dead') => hours.reduce((total, hour) => total + hour[kind], 0)
  const text = words.hours(sum('delivered'), sum('dead'))
  // A count above 0 is drawn high enough to be seen beside any other.
  const heightOf = (count: number) =>
    count === 0 ? 0 : Math.max(1.5, Math.round((count / most) * barsHeight))
  const bars = hours.map(({ delivered, dead }, at) => {
    const [low, high] = [heightOf(delivered), heightOf(dead)]
    const [x, width] = [at * (barWidth + 1), barWidth]
    return html`<rect class="track" x="${x}" y="${barsHeight - 1}" width="${width}" height="1"/>${low > 0 ? html`<rect class="good" x="${x}" y="${barsHeight - low}" width="${width}" height="${low}"/>` : null}${high > 0 ? html`<rect class="bad" x="${x}" y="${Math.max(0, barsHeight - low - high)}" width="${width}" height="${high}"/>` : null}`
  })
  return html`<svg class="hours" viewBox="0 0 ${hours.length * (barWidth + 1)} ${barsHeight}" width="${hours.length * (barWidth + 1)}" height="${barsHeight}" role="img" aria-label="${text}"><title>${text}</title>${bars}</svg>`
}

/** A small line of a day, by quarters of an hour; nothing where there is nothing to see. */
export function curve(points: readonly (number | undefined)[], text: (most: number) => string): Html | null {
  const most = Math.max(0, ...points.map((point) => point ?? 0))
  if (most === 0) return null
  const heightOf = (point: number) => (curveHeight - 1 - (point / most) * (curveHeight - 2)).toFixed(1)
  // A value without a neighbour is drawn as a dot.
  const path = points.map((point, at) => {
    if (point === undefined) return ''
    return points[at - 1] === undefined ? `M${at} ${heightOf(point)}h.1` : `L${at} ${heightOf(point)}`
  })
  const label = text(most)
  return html`<svg class="curve" viewBox="-1 0 ${points.length + 1} ${curveHeight}" width="${points.length + 1}" height="${curveHeight}" role="img" aria-label="${label}"><title>${label}</title><path d="${path.join('')}"/></svg>`
}

const curveHeight = 20
const barWidth = 4
const barsHeight = 22

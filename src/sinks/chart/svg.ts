import type { ChartFigure, Label } from './figure.ts'

/**
 * A chart as SVG text, whose only words are those of the figure. The same figure and theme make the same text. Time runs from
 * left to right in every language, as on the exchange's own charts; halted sessions are a gap in the line.
 */
export type ChartTheme = 'light' | 'dark' | 'both'

export const chartWidth = 480
export const chartHeight = 220
export const chartFont = 'Vazirmatn'

export function chartSvg(figure: ChartFigure, theme: ChartTheme): string {
  const colours = themes[theme]
  const place = placeOf(figure)
  const { level, alertAt, direction } = figure
  const headingX = direction === 'rtl' ? chartWidth - side : side
  const parts = [
    ...(colours.back === undefined ? [] : [`<rect width="100%" height="100%" fill="${colours.back}"/>`]),
    text(figure, figure.heading, headingX, 22, direction === 'rtl' ? 'end' : 'start', colours.ink),
    ...figure.prices.flatMap(({ at, text: words }) => {
      const y = place.y(at)
      // The level has its own label.
      const isFree = level === undefined || Math.abs(place.y(level.at) - y) > fontSize
      return [
        line(
          place.left,
          y,
          place.right,
          y,
          `stroke="${colours.grid}" stroke-opacity="${colours.gridOpacity}"`,
        ),
        ...(isFree ? [text(figure, words, place.right + 8, y + fontSize / 3, 'start', colours.faint)] : []),
      ]
    }),
    ...figure.days.map((day) => dayLabel(figure, day, place, colours.faint)),
    ...stretchesOf(figure).flatMap((stretch) => area(stretch, place, colours.line)),
    gaps(figure, place, colours.line),
    ...stretchesOf(figure).map((stretch) => curve(stretch, place, colours.line)),
    ...(level === undefined ? [] : levelLine(figure, level, place, colours.accent)),
    ...(alertAt === undefined ? [] : alertMark(figure, alertAt, place, colours)),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${chartWidth}" height="${chartHeight}" viewBox="0 0 ${chartWidth} ${chartHeight}" font-family="${chartFont}" font-size="${fontSize}">${parts.join('')}</svg>`
}

/** `both`: without a background, in colours that can be read on white and on the dark of mail programs. */
const themes = {
  light: {
    back: '#ffffff',
    ink: '#1b1f24',
    faint: '#5f6872',
    grid: '#d9dee4',
    gridOpacity: 1,
    line: '#1f6feb',
    accent: '#b3470a',
  },
  dark: {
    back: '#1a1f25',
    ink: '#e8ebee',
    faint: '#a3adb7',
    grid: '#39424c',
    gridOpacity: 1,
    line: '#5aa2ff',
    accent: '#ffab5c',
  },
  both: {
    back: undefined,
    ink: '#7b858f',
    faint: '#7b858f',
    grid: '#8b949e',
    gridOpacity: 0.35,
    line: '#3d84f0',
    accent: '#d2691e',
  },
} as const satisfies Record<ChartTheme, unknown>

const fontSize = 16
/** Of a digit of the font, at this size. */
const digitWidth = 9.2
const side = 12
const top = 38
const bottom = 34

interface Place {
  readonly left: number
  readonly right: number
  x(session: number): number
  y(price: number): number
}

function placeOf({ sessions, low, high, prices, level }: ChartFigure): Place {
  const longest = Math.max(
    3,
    ...[...prices, ...(level ? [level] : [])].map(({ text: words }) => words.length),
  )
  const left = side
  const right = chartWidth - side - Math.min(chartWidth / 3, longest * digitWidth)
  const step = (right - left) / Math.max(1, sessions.length - 1)
  return {
    left,
    right,
    x: (session) => left + session * step,
    y: (price) => top + ((high - price) / (high - low)) * (chartHeight - top - bottom),
  }
}

interface Spot {
  readonly at: number
  readonly close: number
}

/** Sessions in a row that were traded. */
function stretchesOf({ sessions }: ChartFigure): Spot[][] {
  const stretches: Spot[][] = [[]]
  for (const [at, { close }] of sessions.entries()) {
    if (close !== undefined) stretches.at(-1)?.push({ at, close })
    else if ((stretches.at(-1)?.length ?? 0) > 0) stretches.push([])
  }
  return stretches.filter(({ length }) => length > 0)
}

function curve(stretch: readonly Spot[], place: Place, colour: string): string {
  const [first] = stretch
  if (first !== undefined && stretch.length === 1)
    return `<circle cx="${n(place.x(first.at))}" cy="${n(place.y(first.close))}" r="1.5" fill="${colour}"/>`
  return `<polyline points="${pointsOf(stretch, place)}" fill="none" stroke="${colour}" stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"/>`
}

function area(stretch: readonly Spot[], place: Place, colour: string): string[] {
  const [first, last] = [stretch[0], stretch.at(-1)]
  if (first === undefined || last === undefined || first === last) return []
  const ground = n(chartHeight - bottom)
  const corners = `${n(place.x(last.at))},${ground} ${n(place.x(first.at))},${ground}`
  return [`<polygon points="${pointsOf(stretch, place)} ${corners}" fill="${colour}" fill-opacity="0.12"/>`]
}

/** A dotted line leads over each gap. */
function gaps(figure: ChartFigure, place: Place, colour: string): string {
  const stretches = stretchesOf(figure)
  return stretches
    .slice(1)
    .map((next, index) => {
      const [from, to] = [stretches[index]?.at(-1), next[0]]
      if (from === undefined || to === undefined) return ''
      const ends = [place.x(from.at), place.y(from.close), place.x(to.at), place.y(to.close)] as const
      return line(
        ...ends,
        `stroke="${colour}" stroke-opacity="0.6" stroke-dasharray="1 4" stroke-width="1.6" stroke-linecap="round"`,
      )
    })
    .join('')
}

function levelLine(figure: ChartFigure, { at, text: words }: Label, place: Place, colour: string): string[] {
  const y = place.y(at)
  return [
    line(place.left, y, place.right, y, `stroke="${colour}" stroke-width="1.4" stroke-dasharray="6 4"`),
    text(figure, words, place.right + 8, y + fontSize / 3, 'start', colour),
  ]
}

function alertMark(
  figure: ChartFigure,
  at: number,
  place: Place,
  colours: (typeof themes)[ChartTheme],
): string[] {
  const x = place.x(at)
  const close = figure.sessions[at]?.close
  const stem = line(
    x,
    top - 6,
    x,
    chartHeight - bottom,
    `stroke="${colours.accent}" stroke-width="1.2" stroke-dasharray="2 3"`,
  )
  if (close === undefined) return [stem]
  const ring = colours.back === undefined ? '' : ` stroke="${colours.back}" stroke-width="2"`
  return [stem, `<circle cx="${n(x)}" cy="${n(place.y(close))}" r="5" fill="${colours.accent}"${ring}/>`]
}

function dayLabel(figure: ChartFigure, { at, text: words }: Label, place: Place, colour: string): string {
  const anchor = at === 0 ? 'start' : at === figure.sessions.length - 1 ? 'end' : 'middle'
  return text(figure, words, place.x(at), chartHeight - 10, anchor, colour)
}

/** In the reader's direction; without it the library writes from left to right. */
function text(
  { direction }: ChartFigure,
  words: string,
  x: number,
  y: number,
  anchor: 'start' | 'middle' | 'end',
  colour: string,
): string {
  const embedded = `${direction === 'rtl' ? '\u202b' : '\u202a'}${words}\u202c`
  return `<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}" fill="${colour}">${escaped(embedded)}</text>`
}

function line(x1: number, y1: number, x2: number, y2: number, look: string): string {
  return `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" ${look}/>`
}

function pointsOf(stretch: readonly Spot[], place: Place): string {
  return stretch.map(({ at, close }) => `${n(place.x(at))},${n(place.y(close))}`).join(' ')
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10)
}

/** XML has no way to write some characters: they are left out. */
function escaped(words: string): string {
  return words
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

import { fileURLToPath } from 'node:url'
import { parentPort } from 'node:worker_threads'
import { Resvg, type ResvgRenderOptions } from '@resvg/resvg-js'
import { chartFont } from './svg.ts'

/**
 * The thread that makes a PNG of an SVG text: tens of milliseconds of computing that no other alert waits for. It reads one
 * file, the font, and the text names no other.
 */
export interface DrawOrder {
  readonly id: number
  readonly svg: string
}

export interface Drawn {
  readonly id: number
  /** undefined: it could not be drawn. */
  readonly png: Uint8Array | undefined
}

/** Sharp on the screens of phones too. */
const pixelsAPoint = 1.75
const options: ResvgRenderOptions = {
  font: {
    fontFiles: [fileURLToPath(new URL('./font/Vazirmatn-Regular.ttf', import.meta.url))],
    loadSystemFonts: false,
    defaultFontFamily: chartFont,
  },
  fitTo: { mode: 'zoom', value: pixelsAPoint },
  logLevel: 'off',
}

parentPort?.on('message', ({ id, svg }: DrawOrder) => {
  parentPort?.postMessage({ id, png: pngOf(svg) } satisfies Drawn)
})

function pngOf(svg: string): Uint8Array | undefined {
  try {
    return new Resvg(svg, options).render().asPng()
  } catch {
    return undefined
  }
}

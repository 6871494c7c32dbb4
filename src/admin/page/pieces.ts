import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { Level } from '../views/status-view.ts'

/** The small parts that every section of the page is made of. A state is never shown by colour alone. */

export type Tone = Level | 'calm'

export type IconName = 'check' | 'alert' | 'cross' | 'pause' | 'clock' | 'arrow'

export function icon(name: IconName): Html {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="${iconPaths[name]}"/></svg>`
}

export function badge(tone: Tone, name: IconName, text: string): Html {
  return html`<span class="badge ${tone}">${icon(name)}${text}</span>`
}

/** A label over its value, and a smaller line beneath. */
export function fact(label: string, value: HtmlPart, note?: HtmlPart): Html {
  return html`<div class="fact"><dt>${label}</dt><dd>${value}${note ? html`<small>${note}</small>` : null}</dd></div>`
}

export function section(id: string, title: string, aside: HtmlPart, body: HtmlPart): Html {
  return html`<section aria-labelledby="${id}"><header class="row"><h2 id="${id}">${title}</h2><div class="aside">${aside}</div></header>${body}</section>`
}

const iconPaths: Record<IconName, string> = {
  check: 'M3 8.5 6.5 12 13 4.5',
  alert: 'M8 3v6M8 12.2v.3',
  cross: 'M4 4l8 8M12 4l-8 8',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  clock: 'M8 4v4l2.5 2M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0',
  arrow: 'M3 8h9M8.5 4.5 12 8l-3.5 3.5',
}

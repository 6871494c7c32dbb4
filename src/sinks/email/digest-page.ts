import { type Display, displayDirection } from '../../alert/text/display.ts'
import { type Html, html } from '../../alert/text/html.ts'
import { betweenFacts, type Direction } from '../../alert/text/text.ts'
import { withoutAutolinks } from '../autolinks.ts'
import { type Content, listValues, smallPrint } from '../content.ts'
import { faint, font, ink, mailLayout, sideOf } from './layout.ts'
import { linked, parted } from './page.ts'

/** Several alerts as one HTML mail: a list in which each reads in its own direction. */
export function digestPage(title: string, contents: readonly Content[], display: Display): string {
  const side = sideOf(displayDirection(display))
  const style = html`margin:0;font-size:20px;line-height:1.5;font-weight:700;${ink}`
  const rows = [
    html`<tr><td ${side} style="padding:24px 28px 8px;${font}"><h1 class="ab-ink" style="${style}">${title}</h1></td></tr>`,
    ...contents.map(digestEntry),
    html`<tr><td style="padding:0 0 14px;font-size:0;line-height:0">&nbsp;</td></tr>`,
  ]
  return mailLayout(title, display, rows).markup
}

/** One alert of a digest. */
export function digestEntry(content: Content): Html {
  const { title, url, why, around } = content
  const between = signBetween(around)
  const side = sideOf(title.direction)
  const heading = html`margin:0;font-size:16px;line-height:1.6;font-weight:700;overflow-wrap:anywhere;${ink}`
  const small = html`margin:4px 0 0;font-size:13px;line-height:1.7;overflow-wrap:anywhere;${faint}`
  const reasons = why.map(
    ({ text, direction }) =>
      html`<div class="ab-ink" ${sideOf(direction)} style="margin:4px 0 0;font-size:14px;line-height:1.7;${ink}">${withoutAutolinks(text)}</div>`,
  )
  // The line between two alerts is the cell's border, so that it has the full width in both directions.
  return html`<tr><td class="ab-line" ${side} style="padding:14px 28px;border-top:1px solid #edf0f3;overflow-wrap:anywhere;${font}">
<h2 class="ab-ink" style="${heading}">${linked(title.text, url)}</h2>
${reasons}
<div class="ab-faint" ${side} style="${small}">${parted(listValues(content), between)}</div>
<div class="ab-faint" ${side} style="${small}font-size:12px">${parted(smallPrint(content), between)}</div>
</td></tr>`
}

/** The Persian sign alone, so that it does not turn the parts of an English alert around. */
function signBetween(around: Direction): Html {
  const sign = betweenFacts(around)
  return around === 'rtl' ? html`<bdi>${sign.trimEnd()}</bdi> ` : html`${sign}`
}

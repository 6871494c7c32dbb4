import type { Alert } from '../../alert/alert.ts'
import { type Display, displayDirection, firedTime, linkOf, titleOf } from '../../alert/display.ts'
import { cut, type Direction, directionOf, fewLines, oneLine } from '../../alert/text.ts'
import { heldBackText, wordsOf } from '../../alert/words.ts'
import { Html, html } from './html.ts'

/**
 * An alert as an HTML mail. Webmail drops the attributes of <html> and <body>, so every cell says its own direction and
 * alignment, and colours stand inline with a style sheet only for dark screens.
 */
export function mailPage(alert: Alert, display: Display, heldBack = 0): string {
  const title = cut(titleOf(alert), titleCharsMax)
  const side = sideOf(directionOf(title, displayDirection(display)))
  const url = linkOf(alert)
  const rows = [
    html`<tr><td ${side} style="padding:24px 28px 4px;${font}">${headline(title, url)}</td></tr>`,
    html`<tr><td ${side} style="padding:12px 28px 4px">${facts(alert, display, side)}</td></tr>`,
    ...why(alert, display),
    ...(url === undefined ? [] : [button(url, wordsOf(display).open, side)]),
    html`<tr><td ${side} style="padding:20px 28px 22px;${font}">${heldLine(heldBack, display)}${origin(alert, display)}</td></tr>`,
  ]
  return page(title, display, rows).markup
}

const titleCharsMax = 300
const factCharsMax = 300
const whyCharsMax = 4_000
const whyLinesMax = 40

const font = new Html("font-family:Vazirmatn,Vazir,Tahoma,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;")
const ink = new Html('color:#1b1f24;')
const faint = new Html('color:#626a73;')

const darkStyles = new Html(`
:root { color-scheme: light dark; supported-color-schemes: light dark; }
a { text-decoration: none; }
@media (prefers-color-scheme: dark) {
  .ab-back { background: #101317 !important; }
  .ab-card { background: #1a1f25 !important; border-color: #2c333b !important; }
  .ab-ink { color: #e8ebee !important; }
  .ab-faint { color: #9aa4ae !important; }
  .ab-line { border-color: #2c333b !important; }
  .ab-why { background: #222930 !important; }
  .ab-button { background: #2f74c9 !important; }
}
@media (max-width: 480px) {
  .ab-back { padding: 0 !important; }
  .ab-card { border-radius: 0 !important; border-left: 0 !important; border-right: 0 !important; }
}`)

function page(title: string, display: Display, rows: readonly Html[]): Html {
  const direction = new Html(`dir="${displayDirection(display)}"`)
  return html`<!doctype html>
<html lang="${display.language}" ${direction}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${title}</title>
<style>${darkStyles}
</style>
</head>
<body class="ab-back" style="margin:0;padding:0;background:#eef1f4">
<table role="presentation" class="ab-back" width="100%" cellpadding="0" cellspacing="0" border="0" style="${backStyle}">
<tr><td align="center" style="padding:0">
<table role="presentation" class="ab-card" align="center" ${direction} width="100%" cellpadding="0" cellspacing="0" border="0" style="${cardStyle}">
<tr><td style="height:4px;line-height:4px;font-size:0;background:#1f6feb;border-radius:9px 9px 0 0">&nbsp;</td></tr>
${rows}
</table>
</td></tr>
</table>
</body>
</html>
`
}

const backStyle = 'background:#eef1f4;padding:24px 12px;width:100%'
const cardStyle =
  'max-width:600px;margin:0 auto;background:#ffffff;border:1px solid #dde2e7;border-radius:10px;border-collapse:separate'

function headline(title: string, url: string | undefined): Html {
  const style = html`margin:0;font-size:20px;line-height:1.5;font-weight:700;overflow-wrap:anywhere;${ink}`
  const text = html`<bdi>${title}</bdi>`
  const linked =
    url === undefined
      ? text
      : html`<a class="ab-ink" href="${url}" style="${ink}text-decoration:none">${text}</a>`
  return html`<h1 class="ab-ink" style="${style}">${linked}</h1>`
}

function facts(alert: Alert, display: Display, side: Html): Html {
  const words = wordsOf(display)
  const all: [string, string | null][] = [
    [words.symbol, alert.symbol],
    [words.kind, alert.kind],
    [words.fired, firedTime(alert, display)],
  ]
  const rows = all.flatMap(([word, value]) =>
    value === null || value.trim() === '' ? [] : [fact(word, cut(oneLine(value), factCharsMax), side)],
  )
  return html`<table role="presentation" ${side} width="100%" cellpadding="0" cellspacing="0" border="0">${rows}</table>`
}

function fact(word: string, value: string, side: Html): Html {
  const cell = html`padding:7px 0;font-size:14px;line-height:1.6;border-bottom:1px solid #edf0f3;${font}`
  return html`<tr>
<td class="ab-faint ab-line" ${side} width="90" valign="top" style="${cell}${faint}">${word}</td>
<td class="ab-ink ab-line" ${side} valign="top" style="${cell}${ink}overflow-wrap:anywhere"><bdi>${value}</bdi></td>
</tr>`
}

function why(alert: Alert, display: Display): Html[] {
  const lines = fewLines(alert.why ?? '', whyLinesMax)
  if (lines.length === 0) return []
  const around = displayDirection(display)
  const lineCharsMax = Math.floor(whyCharsMax / lines.length)
  const side = sideOf(directionOf(lines.join(' '), around))
  const style = html`padding:12px 14px;font-size:14px;line-height:1.7;border-radius:8px;${font}${ink}`
  const paragraphs = lines.map((line) => html`<div ${side}>${cut(line, lineCharsMax)}</div>`)
  return [
    html`<tr><td ${side} style="padding:14px 28px 0"><table role="presentation" ${side} width="100%" cellpadding="0" cellspacing="0" border="0">
<tr><td class="ab-ink ab-why" ${side} style="${style}background:#f4f6f8;overflow-wrap:anywhere">${paragraphs}</td></tr>
</table></td></tr>`,
  ]
}

function button(url: string, word: string, side: Html): Html {
  const style = html`display:inline-block;padding:10px 20px;border-radius:8px;color:#ffffff;font-size:14px;${font}`
  return html`<tr><td ${side} style="padding:18px 28px 0">
<a class="ab-button" href="${url}" style="${style}background:#1f6feb;font-weight:700;text-decoration:none">${word}</a>
</td></tr>`
}

function heldLine(heldBack: number, display: Display): Html {
  const text = heldBackText(heldBack, display)
  const style = html`margin:0 0 6px;font-size:13px;line-height:1.6;${ink}`
  if (text === undefined) return new Html('')
  return html`<div class="ab-ink" dir="${displayDirection(display)}" style="${style}">${text}</div>`
}

function origin(alert: Alert, display: Display): Html {
  const words = wordsOf(display)
  const style = html`font-size:12px;line-height:1.6;overflow-wrap:anywhere;${faint}`
  const rules = cut(alert.ruleIds.map(oneLine).join(', '), factCharsMax)
  const ruled = rules === '' ? new Html('') : html` · ${words.rules} <bdi>${rules}</bdi>`
  return html`<div class="ab-faint" dir="${displayDirection(display)}" style="${style}">${words.source} <bdi>${alert.source}</bdi> · <bdi>${alert.id}</bdi>${ruled}</div>`
}

/** The attributes that put a cell's content on the side where its language starts. */
function sideOf(direction: Direction): Html {
  return direction === 'rtl' ? new Html('dir="rtl" align="right"') : new Html('dir="ltr" align="left"')
}

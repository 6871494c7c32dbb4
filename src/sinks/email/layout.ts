import { type Display, displayDirection } from '../../alert/text/display.ts'
import { Html, html } from '../../alert/text/html.ts'
import type { Direction } from '../../alert/text/text.ts'

/**
 * The layout of every mail. Webmail drops the attributes of <html> and <body>, so every cell has its own direction and
 * alignment; colours are inline, and the style sheet is only for dark screens.
 */
export const font = new Html(
  "font-family:Vazirmatn,Vazir,Tahoma,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;",
)
export const ink = new Html('color:#1b1f24;')
export const faint = new Html('color:#626a73;')

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
  .ab-chart { padding-left: 8px !important; padding-right: 8px !important; }
}`)

export function mailLayout(title: string, display: Display, rows: readonly Html[]): Html {
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

/** The attributes that put a cell's content on the side where its language starts. */
export function sideOf(direction: Direction): Html {
  return direction === 'rtl' ? new Html('dir="rtl" align="right"') : new Html('dir="ltr" align="left"')
}

import { createHash } from 'node:crypto'
import { Html, type HtmlPart, html } from '../../alert/text/html.ts'
import type { Level } from '../views/status-view.ts'
import { dialog } from './buttons.ts'
import { script } from './script.ts'
import { style } from './style.ts'
import type { Times } from './times.ts'
import { scriptWords } from './words/script.ts'

/** The page around its content. It loads nothing from elsewhere; the policy allows its style and script by digest. */
export function documentOf(
  level: Level,
  title: string,
  body: HtmlPart,
  times: Times,
  isWhole: boolean,
): string {
  return `${documentStart(level, title, times)}${html`${body}`.markup}${documentEnd(times, isWhole)}`
}

/** Up to the content: what a browser has of it is shown while the rest is read. */
export function documentStart(level: Level, title: string, times: Times): string {
  const { words, locale, timeZone, nowMs } = times
  const said = scriptWords[words.language]
  const start = html`<!doctype html>
<html lang="${words.language}" dir="${words.direction}" data-now="${new Date(nowMs).toISOString()}" data-words="${JSON.stringify({ ...said, locale, timeZone })}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${marks[level]} ${title}</title>
<link rel="icon" href="${favicon(level)}" data-stale="${favicon('stale')}">
<style>${trusted(style)}</style>
<noscript><meta http-equiv="refresh" content="15"></noscript>
</head>
<body>
<p class="stale" role="alert">${words.stale}</p>
<div class="live"><button type="button" class="act" id="live-pause" aria-pressed="false">${said.pause}</button><button type="button" class="act go" id="live-new" hidden></button><span class="hidden" id="live-said" role="status"></span></div>
<main>`
  return start.markup
}

/** `isWhole`: nothing of it could not be read; else the script asks again. */
export function documentEnd({ words }: Times, isWhole: boolean): string {
  const said = scriptWords[words.language]
  return html`${isWhole ? null : html`<i hidden data-unread></i>`}<noscript><p class="reason">${said.noScript}</p></noscript></main>
${dialog(said)}
<script>${trusted(script)}</script>
</body>
</html>`.markup
}

export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src '${digest(style)}'`,
  `script-src '${digest(script)}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** For our own constants: no other text goes into the page without being escaped. */
function trusted(text: string): Html {
  return new Html(text)
}

function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

/** What the title begins with; the script puts another one there when the page is stale. */
const marks = { ok: '✓', warning: '!', failed: '✗' }
const faviconColours = { ok: '#12945c', warning: '#d98a00', failed: '#d3382e', stale: '#8b93a0' }

function favicon(level: Level | 'stale'): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${faviconColours[level]}"/></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}

import type { Display } from '../../alert/text/display.ts'
import { Html, html } from '../../alert/text/html.ts'
import { wordsOf } from '../../alert/text/words.ts'
import { withoutAutolinks } from '../autolinks.ts'
import type { Picture } from '../chart/picture.ts'
import type { Content, Fact } from '../content.ts'
import { faint, font, ink, mailLayout, sideOf } from './layout.ts'

export interface MailPicture extends Picture {
  readonly contentId: string
}

/** One alert as an HTML mail. */
export function mailPage(content: Content, display: Display, picture?: MailPicture): string {
  const { title, url } = content
  const side = sideOf(title.direction)
  const rows = [
    html`<tr><td ${side} style="padding:24px 28px 4px;${font}">${headline(content)}</td></tr>`,
    html`<tr><td ${side} style="padding:12px 28px 4px">${facts(content.facts, side)}</td></tr>`,
    ...(picture === undefined ? [] : [chart(picture)]),
    ...why(content),
    ...(url === undefined ? [] : [button(url, wordsOf(display).open, side)]),
    html`<tr><td ${side} style="padding:20px 28px 22px;${font}">${heldBackLine(content)}${origin(content, display)}</td></tr>`,
  ]
  return mailLayout(title.text, display, rows).markup
}

function headline({ title, url }: Content): Html {
  const style = html`margin:0;font-size:20px;line-height:1.5;font-weight:700;overflow-wrap:anywhere;${ink}`
  return html`<h1 class="ab-ink" style="${style}">${linked(title.text, url)}</h1>`
}

export function linked(words: string, url: string | undefined): Html {
  const text = html`<bdi>${withoutAutolinks(words)}</bdi>`
  return url === undefined
    ? text
    : html`<a class="ab-ink" href="${url}" style="${ink}text-decoration:none">${text}</a>`
}

function facts(all: readonly Fact[], side: Html): Html {
  const rows = all.map(({ word, value }) => fact(word, value, side))
  return html`<table role="presentation" ${side} width="100%" cellpadding="0" cellspacing="0" border="0">${rows}</table>`
}

function fact(word: string, value: string, side: Html): Html {
  const cell = html`padding:7px 0;font-size:14px;line-height:1.6;border-bottom:1px solid #edf0f3;${font}`
  return html`<tr>
<td class="ab-faint ab-line" ${side} width="120" valign="top" style="${cell}${faint}">${word}</td>
<td class="ab-ink ab-line" ${side} valign="top" style="${cell}${ink}overflow-wrap:anywhere"><bdi>${withoutAutolinks(value)}</bdi></td>
</tr>`
}

/** In the full width of a phone. The picture has no background, so that it can be read on light and on dark. */
function chart({ contentId, alt, width, height }: MailPicture): Html {
  const style = html`display:block;width:100%;max-width:544px;height:auto;border:0;font-size:13px;${font}${faint}`
  return html`<tr><td class="ab-chart" align="center" style="padding:14px 28px 0">
<img class="ab-faint" src="cid:${contentId}" alt="${withoutAutolinks(alt)}" width="${width}" height="${height}" style="${style}">
</td></tr>`
}

function why({ why: lines }: Content): Html[] {
  const [first] = lines
  if (first === undefined) return []
  const side = sideOf(first.direction)
  const style = html`padding:12px 14px;font-size:14px;line-height:1.7;border-radius:8px;${font}${ink}`
  const paragraphs = lines.map(({ text }) => html`<div ${side}>${withoutAutolinks(text)}</div>`)
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

function heldBackLine({ heldBack: text, around }: Content): Html {
  const style = html`margin:0 0 6px;font-size:13px;line-height:1.6;${ink}`
  return text === undefined
    ? new Html('')
    : html`<div class="ab-ink" dir="${around}" style="${style}">${text}</div>`
}

function origin({ origin: parts, around }: Content, display: Display): Html {
  const style = html`font-size:12px;line-height:1.6;overflow-wrap:anywhere;${faint}`
  return html`<div class="ab-faint" dir="${around}" style="${style}">${wordsOf(display).source} ${parted(parts)}</div>`
}

/** Parts whose directions do not affect each other. */
export function parted(parts: readonly string[], between: string | Html = ' · '): Html[] {
  return parts.map((part, at) => html`${at === 0 ? '' : between}<bdi>${withoutAutolinks(part)}</bdi>`)
}

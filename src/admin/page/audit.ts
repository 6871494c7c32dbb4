import type { AuditRow } from '../audit-view.ts'
import { foreign, type Html, html } from './html.ts'
import { plural, type Times } from './times.ts'

/** What operators did, the newest first. */
export function auditList(rows: readonly AuditRow[], times: Times): Html {
  return html`<div class="panel"><ol class="audit">${rows.map((row) => item(row, times))}</ol></div>`
}

function item({ at, action, subject, ids, count, comment, by, from }: AuditRow, times: Times): Html {
  const named = ids.slice(0, idsShownMax).join(', ')
  const more = ids.length > idsShownMax ? ` and ${ids.length - idsShownMax} more` : ''
  const what = [subject, named + more].filter((text) => text !== '').join(': ')
  return html`<li>${times.distance(at)} <b>${action}</b> ${foreign(what)}${count === null ? null : ` (${plural(count, 'alert')})`}${comment ? html` “${foreign(comment)}”` : null}<small>${by}, from ${from}</small></li>`
}

const idsShownMax = 5

import { type Html, html } from '../../alert/text/html.ts'
import type { AuditRow } from '../views/audit-view.ts'
import { foreign } from './foreign.ts'
import type { Times } from './times.ts'

/** What operators did, the newest first. */
export function auditList(rows: readonly AuditRow[], times: Times): Html {
  return html`<div class="panel"><ol class="audit">${rows.map((row) => item(row, times))}</ol></div>`
}

function item({ at, action, subject, ids, count, comment, by, from }: AuditRow, times: Times): Html {
  const named = ids.slice(0, idsShownMax).join(', ')
  const { words } = times
  const more = ids.length > idsShownMax ? words.idsMore(ids.length - idsShownMax) : ''
  const what = [subject, named + more].filter((text) => text !== '').join(': ')
  return html`<li>${times.distance(at)} <b>${words.did[action] ?? words.fromBelow(action)}</b> ${foreign(what, times.sentence(what))}${count === null ? null : ` (${words.alerts(count)})`}${comment ? words.quote(foreign(comment)) : null}<small>${words.byWhom(by, from)}</small></li>`
}

const idsShownMax = 5

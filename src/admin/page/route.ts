import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { fieldsOf } from '../../alert/json/json.ts'
import { html } from '../../alert/text/html.ts'
import { UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { deliveryFields, deliveryFilter, nameField, portionFields } from '../fields.ts'
import type { AdminDeps } from '../ports.ts'
import type { DeliveryPage } from '../views/delivery-view.ts'
import type { StatusView } from '../views/status-view.ts'
import { auditList } from './audit.ts'
import { deadLettersSection } from './dead-letters.ts'
import { deliveriesSection, deliveryRowsMax } from './deliveries.ts'
import { contentSecurityPolicy, documentEnd, documentOf, documentStart } from './document.ts'
import { overview, unknownOverview } from './overview.ts'
import { section } from './pieces.ts'
import { type DeliveriesFilter, fromForm, type SearchNames } from './search.ts'
import { silencesSection } from './silences.ts'
import { sinksSection } from './sinks.ts'
import { sourcesSection } from './sources.ts'
import { backLink, storyHtml } from './story.ts'
import { createTimes, type Times } from './times.ts'

/** GET / : the status page. It is most needed when something is broken, so it shows what it has within a time limit. */
export function registerPage(app: FastifyInstance, deps: AdminDeps): void {
  const canAct = () => deps.adminToken() !== undefined

  app.get('/alerts/:source/:id', { config: { about: storyAbout } }, async (request, reply) => {
    const { source, id } = storyParams.parse(request.params)
    reply.header('content-security-policy', contentSecurityPolicy).type('text/html; charset=utf-8')
    const [found, status] = await Promise.all([
      settle(deps, deps.ports.deliveries.story(source, Number(id))),
      settle(deps, deps.ports.status()),
    ])
    // Title and icon say how the bridge is, as on every page: of an alert that is fine, too, while nothing else arrives.
    const level = status.ok ? status.value.verdict.level : 'failed'
    const times = createTimes(deps.display(), deps.clock.now())
    const { words } = times
    if (!found.ok) {
      reply.code(503)
      const failed = unknownOverview(words, 'failed', words.noStory, words[found.reason])
      return documentOf('failed', `alert-bridge: ${words.noStory}`, failed, times, false)
    }
    if (!found.value) {
      reply.code(404)
      const text = words.notKnown(`${source}.${id}`)
      const unknown = unknownOverview(words, 'warning', words.noAlert, text)
      return documentOf(level, `alert-bridge: ${text}`, html`${backLink(words)}${unknown}`, times, status.ok)
    }
    const { headline } = found.value
    const sinks = status.ok ? new Set(status.value.sinks.map(({ name }) => name)) : undefined
    const canActOn = (sink: string) => canAct() && sinks?.has(sink) !== false
    return documentOf(
      level,
      `alert-bridge: ${headline}`,
      storyHtml(found.value, times, canAct(), canActOn),
      times,
      status.ok,
    )
  })

  app.get('/', { config: { about: pageAbout } }, async (request, reply) => {
    const filter = filterOf(request.query, deps.display().timeZone)
    reply.header('content-security-policy', contentSecurityPolicy).type('text/html; charset=utf-8')
    const endMs = deps.clock.monotonicMs() + settleTimeoutMs
    const status = await settle(deps, deps.ports.status())
    const times = createTimes(deps.display(), deps.clock.now())
    const { words } = times
    if (!status.ok) {
      reply.code(503)
      const failed = unknownOverview(words, 'failed', words.noStatus, words[status.reason])
      return documentOf('failed', `alert-bridge: ${words.noStatus}`, failed, times, false)
    }
    return reply.send(Readable.from(statusPage(deps, status.value, { filter, times, endMs })))
  })

  /** The verdict is sent before the lists are read: it is on the screen however many alerts are kept. */
  async function* statusPage(
    { ports }: AdminDeps,
    view: StatusView,
    { filter, times, endMs }: { filter: DeliveriesFilter; times: Times; endMs: number },
  ): AsyncGenerator<string> {
    const { words } = times
    const { verdict } = view
    const title = `alert-bridge: ${words.headline(verdict)}`
    yield documentStart(verdict.level, title, times) + overview(view, verdict, times).markup
    const names = view.sources.slice(0, chartsMax).map(({ name }) => name)
    const [rows, done, dead, activity, days, silences] = await Promise.all([
      settle(deps, listed(deps, filter), endMs),
      settle(deps, ports.audit.list(auditRowsMax), endMs),
      settle(deps, ports.deadLetters.groups(), endMs),
      settle(deps, ports.sinks.activity(), endMs),
      settle(deps, Promise.all(names.map((name) => ports.sources.day(name))), endMs),
      settle(deps, ports.silences.list(), endMs),
    ])
    yield html`
${sourcesSection(canAct(), days.ok ? days.value.filter((day) => day !== undefined) : [], view, times)}
${sinksSection(view.sinks, activity.ok ? activity.value : [], times, canAct())}
${dead.ok ? deadLettersSection(dead.value, times, canAct()) : null}
${silences.ok ? silencesSection(silences.value, times, canAct()) : null}
${deliveriesSection(rows.ok ? rows.value : undefined, filter, namesIn(view), times)}
${done.ok && done.value.length > 0 ? section('actions', words.actions, html`<a href="/api/v1/audit">${words.all}</a>`, auditList(done.value, times)) : null}
${canAct() ? null : html`<p class="reason">${words.noToken}</p>`}
<footer><a href="/api/v1/status">${words.foot.status}</a><a href="/metrics">${words.foot.metrics}</a><a href="/readyz">${words.foot.ready}</a></footer>`
      .markup
    // What Redis did not answer for a moment may look the same to the stream of events, which then has no news.
    const isRead = view.redis.ok && view.unrouted !== null && view.orphans !== null
    yield documentEnd(times, isRead && [rows, done, dead, activity, days, silences].every(({ ok }) => ok))
  }
}

const storyAbout = { says: 'The story of one alert, as a page', answer: 'text/html' }

const storyParams = z.object({
  source: nameField,
  id: z.string().regex(/^\d{1,16}$/, 'expected the id of an alert'),
})
const auditRowsMax = 10
/** Sources whose day is drawn; that of any is at /api/v1/sources/NAME/day. */
const chartsMax = 8

/**
 * After this time the page is shown without the parts that are missing: people reload a page that hangs, and its script takes one that
 * needs 4 s for a bridge that does not answer.
 */
const settleTimeoutMs = 3_000

type Settlement<T> = { ok: true; value: T } | { ok: false; reason: 'tooLate' | 'logSays' }

async function settle<T>(
  { clock, log }: Pick<AdminDeps, 'clock' | 'log'>,
  work: Promise<T>,
  endMs = clock.monotonicMs() + settleTimeoutMs,
): Promise<Settlement<T>> {
  const done = new AbortController()
  const late = clock.sleep(Math.max(0, endMs - clock.monotonicMs()), done.signal).then(
    (): Settlement<T> => ({ ok: false, reason: 'tooLate' }),
    (): Settlement<T> => ({ ok: false, reason: 'tooLate' }),
  )
  const result = work.then(
    (value): Settlement<T> => ({ ok: true, value }),
    (thrown): Settlement<T> => {
      // Not shown on the page: the error of a library may contain an address or a secret.
      log.warn({ err: thrown }, 'status page lacks a part')
      return { ok: false, reason: 'logSays' }
    },
  )
  try {
    return await Promise.race([result, late])
  } finally {
    done.abort()
  }
}

/** An empty page for a sink or a source that does not exist, and for a cursor of another version. */
async function listed({ ports }: AdminDeps, filter: DeliveriesFilter): Promise<DeliveryPage> {
  try {
    return await ports.deliveries.search({ ...filter, limit: deliveryRowsMax })
  } catch (thrown) {
    if (thrown instanceof UserError) return { data: [], looked: 0 }
    throw thrown
  }
}

function namesIn({ sinks, sources }: StatusView): SearchNames {
  return { sinks: sinks.map((each) => each.name), sources: sources.map((each) => each.name) }
}

/** A filter that is not valid is ignored: people edit addresses by hand. */
function filterOf(query: unknown, timeZone: string): DeliveriesFilter {
  const asked = fieldsOf(query)
  const valid = Object.entries(pageFields).flatMap(([name, field]) => {
    const parsed = field.safeParse(fromForm(name, asked[name], timeZone))
    return parsed.success && parsed.data !== undefined ? [[name, parsed.data]] : []
  })
  const { cursor, ...filter } = Object.fromEntries(valid)
  return { ...deliveryFilter(filter), ...given({ cursor }) }
}

const pageFields = { ...deliveryFields, cursor: portionFields.cursor }

const pageAbout = {
  says: 'The status page, with the deliveries that the parameters ask for',
  answer: 'text/html',
  parameters: pageFields,
}

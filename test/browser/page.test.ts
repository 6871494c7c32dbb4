import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AuditRow } from '../../src/admin/views/audit-view.ts'
import type { DeliveryRow } from '../../src/admin/views/delivery-view.ts'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { parseConfig } from '../../src/config/load.ts'
import { versionHeader } from '../../src/telemetry/version.ts'
import { rig as admin } from '../admin/rig.ts'
import { row, sink, source, status } from '../admin/views.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { freePort } from '../support/ports.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { useBrowser } from './browser.ts'

/** What operators do on the status page, with mouse and keyboard, over a real bridge. */
const redis = useRedis()
const open = useBrowser()

/** A bridge with a webhook, whose polls follow a plan, so that it can be asked to poll more often. */
async function rig(
  answer: number,
  { history = 3, sink = '', language = 'en', pace = 'maxInterval: 1s' } = {},
) {
  const sandbox = await startSandbox({ history, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver({ answer: { status: answer, body: 'no such channel' } })
  const port = await freePort()
  const settings = `allowPrivateNetworks: true, ${sink}`
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, sink: settings })
    .replace('every: 250ms, ', `${pace}, `)
    .replace('"127.0.0.1:0"', `"127.0.0.1:${port}", hosts: [bridge.test]`)
    .concat(`display: { language: ${language} }\n`)
  let stored = text
  const load = () => parseConfig(stored, { env: process.env, folder: '/' })
  const started = await startApp(text, { operatorsLookEveryMs: 50, load })
  const { app, url } = started
  const reload = async (next: string) => {
    stored = next
    expect(await app.reload()).toMatchObject({ ok: true })
  }
  const sinkNow = async () => (await api<StatusView>(url, '/api/v1/status')).sinks[0]
  const rows = async (state: string) =>
    (await api<{ data: DeliveryRow[] }>(url, `/api/v1/deliveries?state=${state}&limit=100`)).data
  const some = (state: string, count: number) =>
    until(`${count} ${state}`, async () => (await rows(state)).length === count, 30_000)
  const hotUntil = async () => (await api<StatusView>(url, '/api/v1/status')).sources[0]?.plan?.hotUntil
  const audit = async () => (await api<{ data: AuditRow[] }>(url, '/api/v1/audit')).data
  return { ...started, sandbox, hook, text, reload, sinkNow, hotUntil, some, rows, audit }
}

const said = (page: Page) => page.locator('#act-said')

/** What a test answers in the name of the bridge. */
const ofBridge = { [versionHeader]: '1.0.0' }

/** Fills the dialog that is open and carries it out; resolves when it says something that ends the work. */
async function carryOut(page: Page, done: RegExp): Promise<string> {
  const token = page.locator('#act-token input')
  if (await token.isVisible()) await token.fill(adminToken)
  await page.locator('#act-go').click()
  await said(page).filter({ hasText: done }).waitFor()
  return (await said(page).textContent()) ?? ''
}

type Change = () => Promise<void>

async function unanswered(page: Page, url: string, change: Change): Promise<void> {
  await page.goto(url)
  await page.locator('html[data-painted]').waitFor()
  await page.route(`${url}/`, (route) => route.abort())
  await change()
  await page.getByRole('alert').waitFor()
  await page.unroute(`${url}/`)
}

async function selected(page: Page, url: string, change: Change): Promise<void> {
  await page.goto(url)
  await page.locator('html[data-painted]').waitFor()
  await page.evaluate("getSelection().selectAllChildren(document.querySelector('h3'))")
  await change()
  expect(await page.locator('section').getByText('paused meanwhile').count()).toBe(0)
  await page.evaluate('getSelection().removeAllRanges()')
}

async function unheard(page: Page, url: string, change: Change): Promise<void> {
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route('**/api/v1/events', async (route) => {
    asked.resolve()
    await released.promise
    await route.continue()
  })
  await page.goto(url)
  await asked.promise
  await change()
  released.resolve()
}

const close = (page: Page) => page.locator('#act-close').click()

describe('a button', () => {
  it('asks for the token once, says when it is refused, pauses a sink with a comment, and takes that back', async () => {
    const { url, sinkNow, hotUntil, audit } = await rig(204)
    const { page, complaints } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    const token = page.locator('#act-token input')
    await token.fill('a wrong one')
    await page.locator('#act-go').click()
    await page.locator('#act-said.failed').filter({ hasText: /token/ }).waitFor()
    // What was refused is forgotten, and asked for again.
    expect([await token.inputValue(), await token.isVisible()]).toEqual(['', true])
    // So it is once too many came from here: the right one passes all the same.
    const headers = { authorization: 'Bearer a wrong one' }
    for (let tries = 0; tries < 20; tries += 1)
      await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers })
    await token.fill('a wrong one')
    await page.locator('#act-go').click()
    await page
      .locator('#act-said.failed')
      .filter({ hasText: /Too many/ })
      .waitFor()
    expect(await token.isVisible()).toBe(true)
    await page.getByLabel('For (empty: until resumed)').selectOption('1h')
    await page.getByLabel('Why').fill('they migrate')
    expect(await carryOut(page, /^Done/)).toMatch(/^Done: hook is paused until /)
    expect(await sinkNow()).toMatchObject({ state: 'paused', reason: 'they migrate' })
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'Taken back.' }).waitFor()
    expect(await sinkNow()).toMatchObject({ state: 'active' })
    await close(page)

    // Not asked again, and shown without a reload.
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    expect(await token.isVisible()).toBe(false)
    await carryOut(page, /^Done/)
    await close(page)
    await page.locator('#sink-hook').getByText('paused').first().waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    await carryOut(page, /^Done/)
    await close(page)
    await page.locator('#sink-hook').getByText('taking').waitFor()
    await page.getByRole('button', { name: 'Poll more often' }).click()
    expect(await carryOut(page, /^Done/)).toMatch(/^Done: until /)
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'Taken back.' }).waitFor()
    await close(page)
    await until('it is polled as planned', async () => (await hotUntil()) === null)
    await page.getByRole('button', { name: 'Poll more often' }).click()
    await carryOut(page, /^Done/)
    await close(page)
    await page.getByText('Polled more often on request').waitFor()
    expect((await audit()).map(({ action }) => action)).toEqual([
      ...['poll more often', 'poll as planned'],
      ...['poll more often', 'resume sink', 'pause sink', 'resume sink', 'pause sink'],
    ])
    // In no address, storage or cookie.
    expect(
      await page.evaluate('[location.href, document.cookie, localStorage.length, sessionStorage.length]'),
    ).toEqual([...[`${url}/`, '', 0, 0]])
    expect(complaints.filter((text) => !/ 401 | 429 /.test(text))).toEqual([])
  })

  it.each([
    ['en', 'Pause', /^This is no admin token/, /^Done/],
    ['fa', 'توقف', /^این توکن مدیر نیست/, /^انجام شد/],
  ] as const)(
    'says in %s that a token was typed on another keyboard, and asks for it again',
    async (language, name, no, done) => {
      const { url, sinkNow } = await rig(204, { language })
      const { page, complaints } = await open(url)
      await page.getByRole('button', { name, exact: true }).click()
      const token = page.locator('#act-token input')
      await token.fill('توکن')
      await page.locator('#act-go').click()
      await said(page).filter({ hasText: no }).waitFor()
      expect(await token.isVisible()).toBe(true)
      await carryOut(page, done)
      expect(await sinkNow()).toMatchObject({ state: 'paused' })
      expect(complaints).toEqual([])
    },
  )

  it.each([
    [
      'en',
      'Pause',
      'The bridge did not answer. It may have done this all the same: look before you try again.',
    ],
    ['fa', 'توقف', 'پل پاسخ نداد. شاید این کار با این همه انجام شده باشد؛ پیش از تلاش دوباره نگاه کنید.'],
  ] as const)('says in %s that no answer came to what it asked for', async (language, name, text) => {
    const { url } = await rig(204, { language })
    const { page } = await open(url)
    await page.getByRole('button', { name, exact: true }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.route('**/pause', (route) => route.abort())
    await page.locator('#act-go').click()
    await page.locator('#act-said.failed').waitFor()
    expect(await said(page).textContent()).toBe(text)
  })

  it.each([
    [504, '<h1>504 Gateway Time-out</h1>'],
    [504, '{"message":"The upstream server is timing out"}'],
    [200, '<h1>Your session has ended: log in</h1>'],
    [200, '{"login":"/login"}'],
  ])('says what is known where a proxy answers in the place of the bridge: %i', async (status, body) => {
    const { url } = await rig(204)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.route('**/pause', (route) => route.fulfill({ status, contentType: 'text/html', body }))
    await page.locator('#act-go').click()
    await said(page).filter({ hasText: '.' }).waitFor()
    expect(await said(page).textContent()).toBe(
      'The bridge did not answer. It may have done this all the same: look before you try again.',
    )
  })

  it.each([
    [403, '<h1>403 Forbidden</h1>'],
    [429, '{"message":"rate limit exceeded"}'],
    [401, '{"detail":"Not authenticated"}'],
  ])('says that a proxy refused, and keeps the token: %i', async (status, body) => {
    const { url } = await rig(204)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.route('**/pause', (route) => route.fulfill({ status, body }))
    expect(await carryOut(page, /\./)).toBe(`A proxy answered ${status}, not the bridge.`)
    await page.unroute('**/pause')
    expect(await page.locator('#act-token').isVisible()).toBe(false)
    expect(await carryOut(page, /Done/)).toBe('Done: hook is paused.')
  })

  it('sends or deletes what is dead, as a group or one alone, and sends again what was delivered', async () => {
    const { url, hook, some, audit } = await rig(400, { history: 4 })
    await some('dead', 4)
    const { page, complaints } = await open(url)
    await page.locator('.letters .answer').filter({ hasText: 'no such channel' }).waitFor()

    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor()
    expect(new URL(page.url()).pathname).toMatch(/^\/alerts\/main\/\d+$/)
    await page.getByRole('button', { name: 'Drop', exact: true }).click()
    expect(await carryOut(page, /^Done/)).toBe('Done: 1 dropped.')
    await close(page)
    // That letter was all that was left of it.
    await page.getByText('There is no such alert').waitFor()
    await page.getByRole('link', { name: 'all alerts' }).click()
    await page.locator('.letters').waitFor()

    // The token is kept while links within the page are followed.
    await page
      .locator('.alerts > li', { hasText: ': dead' })
      .first()
      .locator('.meta a[href^="/alerts/"]')
      .click()
    await page.getByRole('button', { name: 'Retry', exact: true }).click()
    expect(await page.locator('#act-token').isVisible()).toBe(false)
    hook.answerWith({ status: 204 })
    expect(await carryOut(page, /^Done/)).toBe('Done: 1 retried.')
    await close(page)
    await page.getByText('sent again by an operator').waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    expect(await carryOut(page, /^Done/)).toBe('Done: 1 queued.')
    await close(page)
    await page.goto(url)
    await page.getByRole('button', { name: 'Retry group' }).click()
    expect(await carryOut(page, /^Done/)).toBe('Done: 2 retried.')
    await close(page)
    await page.locator('.letters').waitFor({ state: 'detached' })
    await some('delivered', 3)
    expect((await audit()).map(({ action }) => action).toSorted()).toEqual([
      ...['drop dead letters', 'retry dead letters', 'retry dead letters', 'send again'],
    ])
    expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
  })

  it('is carried out by one press, also from a field that was just changed', async () => {
    const { url, some } = await rig(204, { history: 8 })
    await some('delivered', 8)
    const { page } = await open(url, { width: 360 })
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.getByRole('button', { name: 'Silence what is like it' }).click()
    await page.getByLabel('Symbol').fill('')
    await page.locator('#act-token input').fill(adminToken)
    await page.locator('#act-token input').press('Tab')
    await said(page)
      .filter({ hasText: /, such as / })
      .waitFor()
    const done = Promise.withResolvers<void>()
    await page.route('**/api/v1/silences/preview', async (route) => {
      await done.promise
      await route.continue()
    })
    // The field is left, and so its preview asked for, while the button is being pressed.
    await page.getByLabel('Why').fill('known')
    await page.locator('#act-go').click()
    await said(page)
      .filter({ hasText: /^Done: silenced until/ })
      .waitFor()
    done.resolve()
  })

  it('shows its preview also after a press that never ended on the page', async () => {
    const { url, some } = await rig(204, { history: 1 })
    await some('delivered', 1)
    const { page } = await open(url)
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.getByRole('button', { name: 'Silence what is like it' }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.locator('#act-ask').dispatchEvent('pointerdown', { button: 2 })
    await page.locator('#act-token input').press('Tab')
    await said(page)
      .filter({ hasText: /would have matched/ })
      .waitFor()
  })

  it('that resumes a sink takes that back to the pause that was: its end and its comment', async () => {
    const { url, sinkNow } = await rig(204)
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ for: '2h', comment: 'they migrate' })
    await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body })
    const before = await sinkNow()
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Resume' }).click()
    await carryOut(page, /^Done/)
    expect(await sinkNow()).toMatchObject({ state: 'active' })
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'Taken back.' }).waitFor()
    const after = await sinkNow()
    expect(after).toMatchObject({ state: 'paused', reason: 'they migrate' })
    const movedMs = Date.parse(after?.pausedUntil ?? '') - Date.parse(before?.pausedUntil ?? '')
    expect(Math.abs(movedMs)).toBeLessThan(3_000)
  })

  it('takes nothing back that another operator has done since, and says so', async () => {
    const { url, sinkNow } = await rig(204)
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const others = async (action: string, body: object) => {
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      expect((await fetch(`${url}/api/v1/sinks/hook/${action}`, init)).status).toBe(200)
    }
    const { page } = await open(url)
    for (const [button, change] of [
      ['Pause', { for: '4h', comment: 'still broken' }],
      ['Resume', { comment: 'broken again' }],
    ] as const) {
      await page.getByRole('button', { name: button, exact: true }).click()
      await carryOut(page, /^Done/)
      await others('pause', change)
      await page.locator('#act-undo').click()
      await said(page).filter({ hasText: 'another operator has changed it since' }).waitFor()
      expect(await sinkNow()).toMatchObject({ state: 'paused', reason: change.comment })
      await close(page)
    }
    // Without an end and a comment, one pause is like another.
    await others('resume', {})
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await carryOut(page, /^Done/)
    await others('resume', {})
    await others('pause', {})
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'another operator has changed it since' }).waitFor()
    expect(await sinkNow()).toMatchObject({ state: 'paused' })
  })

  it('that pauses a sink leaves the pause of another operator that the page does not show yet', async () => {
    const { url, sinkNow } = await rig(204)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ for: '4h', comment: 'they migrate' })
    await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body })
    await page.getByLabel('For (empty: until resumed)').selectOption('10m')
    expect(await carryOut(page, /paused already/)).toBe('Sink hook is paused already: that pause stays.')
    expect(await page.locator('#act-undo').isVisible()).toBe(false)
    expect(await sinkNow()).toMatchObject({ state: 'paused', reason: 'they migrate' })
  })

  it('silences what is like an alert after it showed what that would be, and ends the silence on request', async () => {
    const { url, some } = await rig(204, { history: 8 })
    await some('delivered', 8)
    const { page } = await open(url)
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.getByRole('button', { name: 'Silence what is like it' }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.getByLabel('Symbol').fill('')
    await page.getByLabel('Symbol').press('Tab')
    await page.getByLabel('Rule').fill('')
    await page.getByLabel('Rule').press('Tab')
    await said(page)
      .filter({ hasText: /^\d of the 8 alerts of the last day would have matched, such as / })
      .waitFor()
    await carryOut(page, /^Done: silenced until/)
    const silences = async () => (await api<{ data: unknown[] }>(url, '/api/v1/silences')).data.length
    expect(await silences()).toBe(1)
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'Taken back.' }).waitFor()
    await until('it is ended', async () => (await silences()) === 0)
  })

  it('adds a silence from the list of silences, never one without a match, ends it there, and takes that back', async () => {
    const { url, some } = await rig(204, { history: 8 })
    await some('delivered', 8)
    const { page } = await open(url)
    const listed = page.locator('section[aria-labelledby="silences"] li')
    await page.getByRole('button', { name: 'Add a silence' }).click()
    await carryOut(page, /^Say which alerts/)
    // As it is copied from elsewhere: with spaces it would fit no alert.
    const box = page.getByRole('dialog')
    await box.getByLabel('Symbol').fill(' ')
    await box.getByLabel('Kind').fill(' price ')
    await page.getByLabel('Why').fill('they migrate')
    await carryOut(page, /^Done: silenced until/)
    await close(page)
    await listed.filter({ hasText: /kind price.*they migrate.*ends in 59m|ends in 1h/ }).waitFor()
    await page.getByRole('button', { name: 'End now' }).click()
    await carryOut(page, /^Done/)
    const silences = async () => (await api<{ data: object[] }>(url, '/api/v1/silences')).data
    expect(await silences()).toEqual([])
    await page.locator('#act-undo').click()
    await said(page).filter({ hasText: 'Taken back.' }).waitFor()
    expect(await silences()).toMatchObject([{ match: { kind: ['price'] }, comment: 'they migrate' }])
    await close(page)
    await listed.filter({ hasText: 'they migrate' }).waitFor()
    // One that another operator ends, or that ends by itself, is gone from the page that is open.
    const [silence] = (await silences()) as { id: string }[]
    await fetch(`${url}/api/v1/silences/${silence?.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${adminToken}` },
    })
    await until('it is gone', async () => (await listed.count()) === 0)
  })

  it('says what was done, however late the preview answers', async () => {
    const { url, some } = await rig(204, { history: 1 })
    await some('delivered', 1)
    const { page } = await open(url)
    const done = Promise.withResolvers<void>()
    await page.route('**/api/v1/silences/preview', async (route) => {
      await done.promise
      await route.continue()
    })
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.getByRole('button', { name: 'Silence what is like it' }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.locator('#act-token input').press('Tab')
    await said(page).filter({ hasText: '…' }).waitFor()
    await carryOut(page, /^Done: silenced until/)
    const answered = page.waitForResponse('**/api/v1/silences/preview')
    done.resolve()
    await (await answered).finished()
    // Another answer after it: by then the page has had its turn with that one.
    await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
    expect(await said(page).textContent()).toMatch(/^Done: silenced until/)
  })

  it('says in no other dialog what an order did whose own was left', async () => {
    const { url, some, sinkNow } = await rig(400)
    await some('dead', 3)
    const { page } = await open(url)
    const released = Promise.withResolvers<void>()
    await page.route('**/api/v1/dead-letters/drop', async (route) => {
      await released.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Drop dead' }).click()
    await page.locator('#act-token input').fill(adminToken)
    await page.locator('#act-go').click()
    await said(page).filter({ hasText: '…' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.locator('#act-go').click()
    await said(page).filter({ hasText: 'still at work' }).waitFor()
    const answered = page.waitForResponse('**/api/v1/dead-letters/drop')
    released.resolve()
    await (await answered).finished()
    await some('dead', 0)
    expect(await said(page).textContent()).not.toMatch(/^Done/)
    expect(await sinkNow()).toMatchObject({ state: 'active' })
    await carryOut(page, /^Done: hook is paused/)
    expect(await sinkNow()).toMatchObject({ state: 'paused' })
  })

  it('says of an order in portions that it is at work, and only of all of it that it is done', async () => {
    const { url, some } = await rig(400)
    await some('dead', 3)
    const { page } = await open(url)
    const released = Promise.withResolvers<void>()
    const cursors = ['second', 'third', null]
    await page.route('**/api/v1/dead-letters/drop', async (route) => {
      const [cursor] = cursors.splice(0, 1)
      if (cursor === null) await released.promise
      await route.fulfill({ headers: ofBridge, json: { dropped: 1_000, unknown: [], cursor } })
    })
    await page.getByRole('button', { name: 'Drop dead' }).click()
    expect(await carryOut(page, /2,000/)).toBe(
      'At work: 2,000 dropped so far. It stops where this tab is closed.',
    )
    released.resolve()
    await said(page).filter({ hasText: 'Done: 3,000 dropped.' }).waitFor()
  })

  it('is carried out also where its dialog follows at once on another one that was left', async () => {
    const { url, some, sinkNow } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    // The browser tells of the end of the first dialog when the second one is there.
    await page.evaluate(
      `document.querySelector('#act').close(); [...document.querySelectorAll('button')].find((each) => each.textContent === 'Pause').click()`,
    )
    await carryOut(page, /^Done: hook is paused/)
    expect(await sinkNow()).toMatchObject({ state: 'paused' })
  })

  it('says of an order in portions that breaks off how far it came', async () => {
    const { url, some } = await rig(400)
    await some('dead', 3)
    const { page } = await open(url)
    const answers = [
      { headers: ofBridge, json: { dropped: 1_000, unknown: [], cursor: 'second' } },
      { headers: ofBridge, json: { dropped: 500, unknown: [], cursor: 'third' } },
      { headers: ofBridge, status: 503, json: { detail: 'Redis does not answer.' } },
    ]
    await page.route('**/api/v1/dead-letters/drop', (route) => route.fulfill(answers.shift() ?? {}))
    await page.getByRole('button', { name: 'Drop dead' }).click()
    expect(await carryOut(page, /Redis/)).toBe(
      'It broke off; before that: 1,500 dropped. Redis does not answer.',
    )
  })

  it('copies its command for the terminal, or shows it where the browser keeps the clipboard from pages without TLS', async () => {
    const { url, some, rows } = await rig(400, { history: 1 })
    await some('dead', 1)
    const [{ id } = { id: 0 }] = await rows('dead')
    const { page } = await open(url)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(`${url}/alerts/main/${id}`)
    const commands = [`deliveries main.${id}`, `dead-letters retry main.${id} --sink hook`]
    const buttons = page.locator('button.copy')
    const copied = () => page.evaluate('navigator.clipboard.readText()')
    for (const [at, command] of commands.entries()) {
      await buttons.nth(at).click()
      await until('it is copied', async () => (await copied()) === `alert-bridge ${command}`)
    }
    await page.goto(`${url.replace('127.0.0.1', 'bridge.test')}/alerts/main/${id}`)
    const shown: string[] = []
    page.on('dialog', async (dialog) => {
      shown.push(dialog.defaultValue())
      await dialog.dismiss()
    })
    for (const at of commands.keys()) {
      await buttons.nth(at).click()
      await until('it is shown', async () => shown.length > at)
    }
    expect(shown).toEqual(commands.map((command) => `alert-bridge ${command}`))
  })

  it('speaks Persian on a Persian page, where ages tick in Persian too', async () => {
    const { url, some, sinkNow } = await rig(204, { language: 'fa' })
    await some('delivered', 3)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'توقف' }).click()
    await page.locator('#act-fields select').selectOption({ label: '۱ ساعت' })
    expect(await carryOut(page, /^انجام شد/)).toMatch(/^انجام شد: hook اکنون متوقف است تا .*۱۴/)
    expect(await sinkNow()).toMatchObject({ state: 'paused' })
    await close(page)
    const age = page.locator('.facts time[data-age]').first()
    const shown = await age.textContent()
    await until('ages tick', async () => (await age.textContent()) !== shown)
    expect(await age.textContent()).toMatch(/^(همین حالا|[۰-۹]+ ثانیه (پیش|دیگر))$/)
  })

  it('tries a sink that rests, and deletes its dead letters', async () => {
    const { url, hook, sinkNow } = await rig(503, {
      ...{ history: 6, sink: 'retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }' },
    })
    await until('it rests', async () => (await sinkNow())?.state === 'open', 30_000)
    const { page } = await open(url)
    const sent = hook.requests.length
    hook.answerWith({ status: 400 })
    await page.getByRole('button', { name: 'Probe now' }).click()
    expect(await carryOut(page, /^Done/)).toBe('Done: hook is probing.')
    await close(page)
    await hook.received(sent + 1)
    await page.getByRole('button', { name: 'Drop dead' }).click()
    expect(await carryOut(page, /^Done/)).toMatch(/^Done: \d+ dropped\.$/)
    await close(page)
    await until('none is dead', async () => (await sinkNow())?.dead === 0)
  })
})

describe('the page lives', () => {
  it('it says stale while the bridge is away, also in title and icon, and goes on by itself', async () => {
    const { app, url, text, sandbox, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    const shown = () =>
      page.evaluate(
        `({ title: document.title, icon: document.querySelector('link[rel=icon]').href })`,
      ) as Promise<{
        readonly title: string
        readonly icon: string
      }>
    const before = await shown()
    await app.stop()
    await page.getByRole('alert').waitFor()
    const away = await shown()
    expect(away.title).toMatch(/^\? alert-bridge: .* \(stale\)$/)
    // That of no verdict.
    expect(away.icon).toBe(await page.locator('link[rel=icon]').getAttribute('data-stale'))
    expect(away.icon).not.toBe(before.icon)
    sandbox.fire({ headline: 'fired while the bridge was away' })
    await startApp(text)
    await page.getByRole('alert').waitFor({ state: 'hidden', timeout: 20_000 })
    await page.getByText('fired while the bridge was away').waitFor({ timeout: 20_000 })
    await until('the title is as before', async () => !(await shown()).title.includes('stale'))
    expect((await shown()).icon).toMatch(/^data:/)
  })

  it.each([
    ['paused', (page: Page) => page.getByRole('button', { name: 'Pause updates' }).click()],
    [
      'selected',
      (page: Page) => page.evaluate("getSelection().selectAllChildren(document.querySelector('h3'))"),
    ],
    ['under a dialog', (page: Page) => page.getByRole('button', { name: 'Poll more often' }).click()],
  ])(
    'it says stale also where nothing is replaced, and not any more once the bridge answers: %s',
    async (_how, rest) => {
      const { app, url, text, some } = await rig(204)
      await some('delivered', 3)
      const { page } = await open(url)
      await page.locator('html[data-painted]').waitFor()
      const shown = () =>
        page.evaluate(`[document.title, document.querySelector('link[rel=icon]').href]`) as Promise<string[]>
      const before = await shown()
      await rest(page)
      await app.stop()
      const stale = page.locator('html[data-stale]')
      await stale.waitFor({ timeout: 15_000 })
      expect((await shown())[0]).toMatch(/^\? alert-bridge: .* \(stale\)$/)
      await startApp(text)
      await stale.waitFor({ state: 'detached', timeout: 20_000 })
      expect(await shown()).toEqual(before)
    },
  )

  it.each([
    ['an answer that did not come', unanswered],
    ['a text that was being selected', selected],
    ['a stream that took a moment to begin', unheard],
  ])('it takes up by itself what it missed over %s, though nothing changes any more', async (_, miss) => {
    // No poll changes anything for a long time.
    const { url, some } = await rig(204, { pace: 'every: 10m' })
    await some('delivered', 3)
    const { page: reader } = await open(url)
    const { page } = await open('about:blank')
    await miss(page, url, async () => {
      const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ comment: 'paused meanwhile' })
      await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body })
      await reader.getByText('paused meanwhile').first().waitFor()
    })
    await page.locator('section').getByText('paused meanwhile').first().waitFor()
    // An answer that was on its way before may have had it, and the one after it failed.
    await page.getByRole('alert').waitFor({ state: 'hidden' })
  })

  it.each([
    ['/', 'The deliveries cannot be read now.', 'فولاد از ۵٬۲۰۰ ریال گذشت'],
    ['/alerts/main/1', 'The alert cannot be read now', 'There is no such alert'],
  ])('it asks again for what could not be read, though nothing changes: %s', async (path, unread, there) => {
    // As often as a page asks when it begins: for itself, as its stream opens, and at the first news.
    let failuresLeft = 3
    const flaky =
      <T>(answer: T) =>
      async () => {
        failuresLeft -= 1
        if (failuresLeft >= 0) throw new Error('Redis is slow')
        return answer
      }
    const search = flaky({ data: [row()], looked: 1 })
    const { app } = admin({ deliveries: { search, story: flaky(undefined) } as never })
    onTestFinished(() => app.close())
    const { page } = await open((await app.listen({ port: 0, host: '127.0.0.1' })) + path)
    await page.getByText(unread).waitFor()
    await page.getByText(there).first().waitFor()
    expect(await page.getByText(unread).count()).toBe(0)
  })

  it('buttons work also behind a proxy that asks for a login of its own', async () => {
    const { url, sinkNow } = await rig(204)
    const login = `Basic ${Buffer.from('ops:pw').toString('base64')}`
    const proxy = createServer((asked, answer) => {
      if (asked.headers.authorization !== login)
        return void answer.writeHead(401, { 'www-authenticate': 'Basic realm="ops"' }).end('<h1>401</h1>')
      const { method = 'GET', headers } = asked
      const onward = request(url + (asked.url ?? ''), { method, headers }, (came) => {
        came.pipe(answer.writeHead(came.statusCode ?? 502, came.headers))
      })
      onward.on('error', () => answer.destroy())
      answer.on('close', () => onward.destroy())
      asked.pipe(onward)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      proxy.close()
      proxy.closeAllConnections()
    })
    const httpCredentials = { username: 'ops', password: 'pw' }
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const { page } = await open(address, { httpCredentials })
    await page.locator('#sink-hook').getByRole('button', { name: 'Pause', exact: true }).click()
    expect(await carryOut(page, /Done|answered/)).toBe('Done: hook is paused.')
    expect((await sinkNow())?.state).toBe('paused')
  })

  it('news come within seconds also behind a proxy that passes on no event before the stream ends', async () => {
    const { url, sandbox, some } = await rig(204)
    await some('delivered', 3)
    const proxy = createServer((asked, answer) => {
      const onward = request(url + (asked.url ?? ''), { headers: asked.headers }, async (came) => {
        answer.writeHead(came.statusCode ?? 502, came.headers).flushHeaders()
        answer.end(await came.reduce((text: string, part) => text + String(part), '').catch(() => ''))
      })
      onward.on('error', () => answer.destroy())
      answer.on('close', () => onward.destroy())
      onward.end()
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      proxy.close()
      proxy.closeAllConnections()
    })
    const { page } = await open(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
    await page.waitForResponse(/\/events$/)
    for (const headline of ['first of the news', 'second of the news']) {
      sandbox.fire({ headline })
      await page.getByText(headline).first().waitFor()
    }
    expect(await page.getByRole('alert').isVisible()).toBe(false)
  })

  it.each([200, 403, 503])(
    'it is not replaced by what a proxy answers in the place of the bridge, and says stale: %i',
    async (status) => {
      const { url, some } = await rig(204)
      await some('delivered', 3)
      const { page, complaints } = await open(url)
      await page.locator('html[data-painted]').waitFor()
      const body =
        '<html lang="en"><link rel="icon" href="data:,"><title>Log in</title><main><h1>Your session has ended</h1><form><input name="user"></form></main>'
      await page.route(`${url}/`, (route) => route.fulfill({ status, contentType: 'text/html', body }))
      await page.route('**/healthz', (route) => route.fulfill({ status, contentType: 'text/html', body }))
      await page.getByRole('button', { name: 'Pause updates' }).click()
      await page.getByRole('button', { name: 'Go on updating' }).click()
      await page.locator('html[data-stale]').waitFor()
      expect(await page.getByText('Your session has ended').count()).toBe(0)
      expect(await page.locator('#sink-hook').count()).toBe(1)
      expect(await page.title()).toMatch(/^\? alert-bridge: /)
      await page.unroute(`${url}/`)
      await page.unroute('**/healthz')
      await page.locator('html[data-stale]').waitFor({ state: 'detached' })
      expect(complaints.filter((text) => !/ 403 | 503 /.test(text))).toEqual([])
    },
  )

  it('it is of one language and one zone, with its dialog and its direction, also where a reload of the config changes them', async () => {
    const { url, text, reload } = await rig(204)
    const { page, complaints } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await carryOut(page, /^Done/)
    await close(page)
    await reload(text.replace('language: en', 'language: fa, timeZone: Asia/Tokyo'))
    await page.locator('html[lang=fa][dir=rtl]').waitFor()
    await page.getByRole('button', { name: 'نگه‌داشتن به‌روزرسانی' }).waitFor()
    await page.getByRole('button', { name: 'پرس‌وجوی بیشتر' }).click()
    // The token is there yet.
    expect(await page.locator('#act-token').isVisible()).toBe(false)
    expect(await page.locator('#act-close').textContent()).toBe('انصراف')
    const answered = page.waitForResponse(/\/hot$/)
    const told = await carryOut(page, /^انجام شد/)
    const { until: end } = await (await answered).json()
    const inZone = { timeZone: 'Asia/Tokyo', timeStyle: 'short' } as const
    expect(told).toContain(new Date(end).toLocaleTimeString('fa', inZone))
    await close(page)
    expect(complaints).toEqual([])
  })

  it('seven windows of one browser, which has six connections to a host, show the news and act, and none says stale', async () => {
    const { url, sandbox, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    const pages = [page]
    while (pages.length < 7) {
      const another = await page.context().newPage()
      await another.goto(url)
      pages.push(another)
    }
    for (const each of pages)
      await each.evaluate(
        "new MutationObserver(() => { window.sawStale ||= document.documentElement.hasAttribute('data-stale') }).observe(document.documentElement, { attributes: true })",
      )
    sandbox.fire({ headline: 'seen in each of seven windows' })
    for (const each of pages) await each.getByText('seen in each of seven windows').first().waitFor()
    for (const each of [page, ...pages.slice(-1)]) {
      await each.getByRole('button', { name: 'Poll more often' }).click()
      await carryOut(each, /^Done/)
    }
    expect(await Promise.all(pages.map((each) => each.evaluate('window.sawStale')))).toEqual(
      pages.map(() => undefined),
    )
  })

  it('who hears the page is told of another verdict, once, and of nothing else', async () => {
    const { url, some, sandbox, sinkNow } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    await page.getByText('Alerts are being delivered').waitFor()
    await page.evaluate(`window.heard = []
      new MutationObserver(() => heard.push(document.getElementById('live-said').textContent))
        .observe(document.getElementById('live-said'), { childList: true, characterData: true, subtree: true })`)
    sandbox.fire({ headline: 'fired while the page is heard' })
    await page.getByText('fired while the page is heard').waitFor()
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body: '{}' })
    await until('it is paused', async () => (await sinkNow())?.state === 'paused')
    const changed = 'Ready, with one thing to look at'
    await page.locator('.headline', { hasText: changed }).waitFor()
    expect(await page.evaluate('heard')).toEqual([changed])
    // Beside it only what says that the page is stale, and what the dialog says.
    const regions = `[...document.querySelectorAll('[role=status], [role=alert], [aria-live]')].map(({ id, className }) => id || className)`
    expect(await page.evaluate(regions)).toEqual(['stale', 'live-said', 'act-said'])
  })

  it('who hears the page is told where a link, a search and Back have led', async () => {
    const { url, some, rows } = await rig(204, { pace: 'every: 10m' })
    await some('delivered', 3)
    const [newest] = await rows('delivered')
    const { page } = await open(url)
    const heard = page.locator('#live-said')
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().focus()
    await page.keyboard.press('Enter')
    await heard.filter({ hasText: newest?.headline ?? '' }).waitFor()
    await page.goBack()
    await heard.filter({ hasText: /^Latest alerts: 3$/ }).waitFor()
    await page.locator('.search summary').click()
    await page.getByLabel('Symbol', { exact: true }).fill('no such symbol')
    await page.keyboard.press('Enter')
    await heard.filter({ hasText: /^Latest alerts: None like that\.$/ }).waitFor()
    await page.getByRole('link', { name: 'all', exact: true }).first().click()
    await heard.filter({ hasText: /^Latest alerts: 3$/ }).waitFor()
    await page.evaluate(
      `const link = document.querySelector('.alerts .meta a'); link.href = '/alerts/main/999999'; link.click()`,
    )
    await heard.filter({ hasText: /^There is no such alert$/ }).waitFor()
  })

  it('nothing moves under who reads the list: new alerts wait behind a button', async () => {
    const { url, sandbox, some } = await rig(204, { history: 40 })
    await some('delivered', 40)
    const { page } = await open(url, { height: 500 })
    await page.locator('.alerts > li').nth(20).scrollIntoViewIfNeeded()
    const row = page.locator('.alerts > li').nth(20)
    const [key, box] = [await row.getAttribute('data-key'), await row.boundingBox()]
    sandbox.fireMany(12)
    await page.getByRole('button', { name: '12 new' }).waitFor()
    expect([await row.getAttribute('data-key'), await row.boundingBox()]).toEqual([key, box])
    await page.getByRole('button', { name: '12 new' }).click()
    await until('all are there', async () => (await page.locator('.alerts > li').count()) === 52)
    expect(await page.locator('#live-new').isVisible()).toBe(false)
  })

  it('of more new alerts than a page has it is not said that they are so few', async () => {
    const { url, sandbox, some } = await rig(204, { history: 40 })
    await some('delivered', 40)
    const { page } = await open(url, { height: 500 })
    await page.locator('.alerts > li').nth(20).scrollIntoViewIfNeeded()
    sandbox.fireMany(59)
    await page.getByRole('button', { name: '59 new', exact: true }).waitFor()
    sandbox.fireMany(80)
    await page.getByRole('button', { name: '60+ new', exact: true }).waitFor()
  })

  it.each<[string, (page: Page) => Promise<unknown>]>([
    ['text is selected', (page) => page.locator('.alerts > li').nth(15).locator('.title').selectText()],
    ['updates are paused', (page) => page.getByRole('button', { name: 'Pause updates' }).click()],
  ])('who asks for the new alerts gets them, also while %s', async (_, rest) => {
    const { url, some, sandbox } = await rig(204, { history: 40 })
    await some('delivered', 40)
    const { page } = await open(`${url}/`)
    await page.locator('.alerts > li').nth(15).scrollIntoViewIfNeeded()
    sandbox.fire({ headline: 'fired meanwhile' })
    const button = page.getByRole('button', { name: '1 new' })
    await button.waitFor()
    await rest(page)
    await button.click()
    await page.getByText('fired meanwhile').waitFor()
    await button.waitFor({ state: 'hidden' })
  })

  it.each(['/', '/alerts/main/1'])(
    'ages on %s follow the clock of the bridge from the beginning',
    async (path) => {
      const { url, some } = await rig(204)
      await some('delivered', 3)
      const { page } = await open('about:blank')
      await page.addInitScript('const now = Date.now; Date.now = () => now() + 7_200_000')
      // No news: the page is not fetched again for 5 s.
      await page.route('**/api/v1/events', () => {})
      await page.goto(url + path)
      await until('ages have ticked', async () => Number(await page.evaluate('performance.now()')) > 2_500)
      const ages = await page.locator('main time[data-age]').allTextContents()
      expect(ages.length).toBeGreaterThan(2)
      expect(ages.filter((text) => /^[12]h/.test(text))).toEqual([])
    },
  )

  it('a link that is followed while the page is read anew leads where it says, and stays there', async () => {
    const { url, some, sandbox } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await page.route(`${url}/`, async (route) => {
      asked.resolve()
      await released.promise
      await route.continue()
    })
    sandbox.fire()
    await asked.promise
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.locator('header.story').waitFor()
    const answered = page.waitForResponse(`${url}/`)
    released.resolve()
    await (await answered).finished()
    // Another answer after it: by then the page has had its turn with that one.
    await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
    expect(await page.locator('header.story').count()).toBe(1)
    expect(new URL(page.url()).pathname).toMatch(/^\/alerts\//)
  })

  it.each<[string, (page: Page) => Promise<unknown>]>([
    ['selected', (page) => page.evaluate("getSelection().selectAllChildren(document.querySelector('h3'))")],
    ['under a dialog', (page) => page.getByRole('button', { name: 'Pause', exact: true }).click()],
    [
      'in a tab behind another one',
      (page) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { value: true })
          document.dispatchEvent(new Event('visibilitychange'))`),
    ],
  ])('verdict, title and icon follow also where the lists are not replaced: %s', async (_, rest) => {
    const { url, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open('about:blank')
    await page.clock.install()
    await page.goto(url)
    await page.locator('html[data-painted]').waitFor()
    await rest(page)
    const before = await page.locator('link[rel=icon]').getAttribute('href')
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body: '{}' })
    const changed = 'Ready, with one thing to look at'
    await until('the title says so', async () => {
      await page.clock.runFor(5_000)
      return (await page.title()).includes(changed)
    })
    expect(await page.locator('.headline').textContent()).toBe(changed)
    expect(await page.locator('link[rel=icon]').getAttribute('href')).not.toBe(before)
    expect(await page.getByText('taking').count()).toBe(1)
  })

  it('Back leads from the story of an alert to the row that the reader came from', async () => {
    const { url, some } = await rig(204, { history: 40 })
    await some('delivered', 40)
    const { page } = await open(url)
    const link = page.locator('.alerts .meta a[href^="/alerts/"]').last()
    await link.scrollIntoViewIfNeeded()
    const top = `Math.round(document.querySelector('.alerts').getBoundingClientRect().bottom)`
    const left = await page.evaluate(top)
    await link.click()
    await page.locator('header.story').waitFor()
    await page.goBack()
    await page.locator('ol.alerts').waitFor()
    await until('it is where it was', async () => (await page.evaluate(top)) === left)
  })

  it('Back from a page of older alerts shows the newest, and calls none of them new', async () => {
    const { url, some } = await rig(204, { history: 100 })
    await some('delivered', 100)
    const { page } = await open(url, { height: 500 })
    const keys = () =>
      page.locator('.alerts > li').evaluateAll((rows) => rows.map((row) => row.dataset['key']))
    const newest = await keys()
    await page.getByRole('link', { name: 'older' }).click()
    await until('older ones are there', async () => (await keys())[0] !== newest[0])
    await page.locator('.alerts > li').last().scrollIntoViewIfNeeded()
    await page.goBack()
    await until('the newest are there', async () => (await keys()).join() === newest.join())
    expect(await page.locator('#live-new').isVisible()).toBe(false)
  })

  it('a link to where the reader is does not forget the token', async () => {
    const { url, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await carryOut(page, /^Done: hook is paused/)
    await page.locator('#act-close').click()
    await page.getByRole('link', { name: 'all', exact: true }).first().click()
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    expect(await page.locator('#act-token').isVisible()).toBe(false)
  })

  it('a search stands in the address, which finds the same again, and does not forget the token', async () => {
    const { url, some, rows } = await rig(204)
    await some('delivered', 3)
    const [wanted] = await rows('delivered')
    const { page } = await open(`${url}/`)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await carryOut(page, /^Done: hook is paused/)
    await page.locator('#act-close').click()
    await page.locator('.search summary').click()
    await page.getByLabel('Id', { exact: true }).fill('no id')
    await page.getByRole('search').getByRole('button').click()
    expect(page.url()).toBe(`${url}/`)
    await page.getByRole('search').getByRole('combobox', { name: 'Sink' }).selectOption('hook')
    const persian = String(wanted?.id).replace(/\d/g, (digit) => '۰۱۲۳۴۵۶۷۸۹'.charAt(Number(digit)))
    await page.getByLabel('Id', { exact: true }).fill(` ${persian} `)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/?id=${encodeURIComponent(persian)}&sink=hook#deliveries`)
    await until('it is found', async () => (await page.locator('.alerts > li').count()) === 1)
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    expect(await page.locator('#act-token').isVisible()).toBe(false)
    const { page: shared } = await open(page.url())
    expect(await shared.locator('.alerts > li').count()).toBe(1)
    expect(await shared.getByLabel('Id', { exact: true }).inputValue()).toBe(String(wanted?.id))
  })

  it.each([
    ['nothing answers', (page: Page) => page.route('**/*', (route) => route.abort())],
    [
      'a proxy says so',
      (page: Page) =>
        page.route('**/*', (route) => route.fulfill({ status: 502, body: '<h1>502 Bad Gateway</h1>' })),
    ],
  ])(
    'a link and a search while the bridge is away leave the page there, and do not forget the token: %s',
    async (_how, leave) => {
      const { url, some } = await rig(204)
      await some('delivered', 3)
      const { page } = await open(`${url}/`)
      await page.getByRole('button', { name: 'Pause', exact: true }).click()
      await carryOut(page, /^Done: hook is paused/)
      await close(page)
      await page.locator('.search summary').click()
      await page.getByLabel('Symbol', { exact: true }).fill('not asked for yet')
      await leave(page)
      const told = page.locator('#live-said').filter({ hasText: 'The bridge did not answer.' })
      const link = page.locator('.alerts .meta a[href^="/alerts/"]').first()
      for (const go of [() => link.click(), () => page.getByRole('search').getByRole('button').click()]) {
        await page.evaluate("document.getElementById('live-said').textContent = ''")
        await go()
        await told.waitFor({ state: 'attached' })
      }
      expect(await page.getByRole('alert').isVisible()).toBe(true)
      expect(await page.getByLabel('Symbol', { exact: true }).inputValue()).toBe('not asked for yet')
      await page.unroute('**/*')
      await page.getByRole('alert').waitFor({ state: 'hidden', timeout: 20_000 })
      await link.click()
      await page.locator('header.story').waitFor()
      await page.goBack()
      await page.getByRole('button', { name: 'Resume', exact: true }).click()
      expect(await page.locator('#act-token').isVisible()).toBe(false)
    },
  )

  it('a search for one of several symbols has a field for each, of which none is forgotten', async () => {
    const { url } = await rig(204)
    const { page } = await open(`${url}/?symbol=one&symbol=two#deliveries`)
    const symbols = page.getByLabel('Symbol', { exact: true })
    expect(await symbols.evaluateAll((all) => all.map((each) => (each as { value?: string }).value))).toEqual(
      ['one', 'two'],
    )
    await page.getByRole('search').getByRole('combobox', { name: 'Sink' }).selectOption('hook')
    await page.getByRole('search').getByRole('button').click()
    await page.waitForURL(`${url}/?symbol=one&symbol=two&sink=hook#deliveries`)
    await symbols.first().fill('')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/?symbol=two&sink=hook#deliveries`)
    await until('one field is left', async () => (await symbols.count()) === 1)
    expect(await symbols.inputValue()).toBe('two')
  })

  it('what is chosen in the search stays also where a reload of the config brings another sink and a source', async () => {
    let [sinks, sources] = [[sink({ name: 'desk' }), sink({ name: 'hook' })], [source()]]
    const { app } = admin({ status: async () => status({ sinks, sources }) })
    onTestFinished(() => app.close())
    const { page } = await open(await app.listen({ port: 0, host: '127.0.0.1' }))
    await page.locator('.search summary').click()
    const field = (name: string) => page.locator(`.search [name="${name}"]`)
    await field('sink').selectOption('hook')
    await field('state').selectOption('dead')
    await field('since').fill('2026-11-21T08:45')
    sinks = [sink({ name: 'another' }), ...sinks]
    sources = [source({ name: 'early' }), ...sources]
    await page.getByRole('button', { name: 'Pause updates' }).click()
    await page.getByRole('button', { name: 'Go on updating' }).click()
    await field('source').waitFor()
    const chosen = ['sink', 'source', 'state', 'since'].map((name) => field(name).inputValue())
    expect(await Promise.all(chosen)).toEqual(['hook', '', 'dead', '2026-11-21T08:45'])
  })

  it('a time is typed into the search in one go, and no more text than the search takes', async () => {
    const { url } = await rig(204)
    const { page } = await open(`${url}/`)
    await page.locator('.search summary').click()
    await page.getByLabel('From', { exact: true }).focus()
    // The same whether the browser asks for the day first or for the month, and for the half of the day or not.
    await page.keyboard.type('111120260845A')
    expect(await page.getByLabel('From', { exact: true }).inputValue()).toBe('2026-11-11T08:45')
    await page.getByLabel('Symbol', { exact: true }).focus()
    await page.keyboard.insertText('x'.repeat(201))
    expect(await page.getByLabel('Symbol', { exact: true }).inputValue()).toBe('x'.repeat(200))
  })

  it('what is typed into the search stays while news come, and is forgotten elsewhere', async () => {
    const { url, sandbox, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(`${url}/`)
    await page.locator('.search summary').click()
    await page.getByLabel('Symbol', { exact: true }).fill('فو')
    sandbox.fire({ headline: 'fired meanwhile' })
    await page.getByText('fired meanwhile').waitFor()
    const typed = () => page.getByLabel('Symbol', { exact: true }).inputValue()
    expect([await typed(), await page.getByRole('search').isVisible()]).toEqual(['فو', true])
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.locator('header.story').waitFor()
    await page.goBack()
    await page.locator('ol.alerts').waitFor()
    await page.locator('.search summary').waitFor()
    expect(await typed()).toBe('')
  })

  it('what is typed into the search stays, with the cursor in it, while other parts of the page come and go', async () => {
    const { url, sandbox, some } = await rig(400)
    await some('dead', 3)
    const { page } = await open(`${url}/`)
    const letters = page.getByRole('heading', { name: 'Dead letters', exact: true })
    await letters.waitFor()
    await page.locator('.search summary').click()
    await page.getByLabel('Symbol', { exact: true }).fill('فو')
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    await fetch(`${url}/api/v1/dead-letters/drop`, { method: 'POST', headers, body: '{"all":true}' })
    await letters.waitFor({ state: 'detached' })
    await page.keyboard.insertText('لا')
    sandbox.fire({ headline: 'fired meanwhile' })
    await letters.waitFor()
    await page.keyboard.insertText('د')
    expect(await page.getByLabel('Symbol', { exact: true }).inputValue()).toBe('فولاد')
  })

  it('a button that is reached by keyboard stays that of its silence and its dead letters, whatever others change', async () => {
    const { url, sandbox, some } = await rig(400, { sink: 'expireAfter: 1h' })
    await some('dead', 3)
    const post = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
      const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
      return (await answer.json()) as { data: { id: string } }
    }
    const silence = async (symbol: string, span: string) =>
      (await post('/api/v1/silences', { match: { symbol: [symbol] }, for: span })).data.id
    const first = await silence('one', '2h')
    const second = await silence('two', '4h')
    const { page } = await open(`${url}/`)
    const focused = () => page.evaluate('document.activeElement.dataset.act ?? ""')
    const list = page.locator('section[aria-labelledby="silences"] li')
    const other = { [first]: second, [second]: first }
    for (const id of [first, second]) {
      await page.locator(`button[data-act*="${id}"]`).focus()
      const before = await list.count()
      const more = await silence('three', '3h')
      await until('it is shown', async () => (await list.count()) === before + 1)
      expect(await focused()).toContain(id)
      await fetch(`${url}/api/v1/silences/${more}`, {
        ...{ method: 'DELETE', headers: { authorization: `Bearer ${adminToken}` } },
      })
      await until('it is gone', async () => (await list.count()) === before)
      expect([id, await focused()]).toEqual([id, expect.stringContaining(id)])
      expect(await focused()).not.toContain(other[id])
    }
    // Old alerts expire: another group of dead letters, which soon has more of them and comes before.
    const letters = page.locator('.letters tbody tr')
    await letters.locator('button[data-act*="letters/drop"]').focus()
    const firedAt = new Date(Date.now() - 7_200_000).toISOString()
    for (let nth = 0; nth < 4; nth += 1) sandbox.fire({ firedAt, headline: `old ${nth}` })
    await letters.first().getByText('4', { exact: true }).waitFor()
    await until('two groups', async () => (await letters.count()) === 2)
    expect(await focused()).toContain('rejected')
  })

  it('a button that is reached by keyboard stays what it is, when another comes before it', async () => {
    const { url, sandbox, hook, some } = await rig(400, {
      sink: 'retry: { initialDelay: 10m, maxDelay: 1h }',
    })
    await some('dead', 3)
    const { page } = await open(`${url}/`)
    const row = page.locator('#sink-hook')
    await row.locator('button[data-act*="letters/drop"]').focus()
    hook.answerWith({ status: 503 })
    sandbox.fireMany(12)
    await row.locator('button[data-act*="hook/probe"]').waitFor()
    expect(await page.evaluate('document.activeElement.dataset.act')).toContain('letters/drop')
  })

  it('Back, too, is asked again where it got no answer, though nothing changes any more', async () => {
    const { url, some } = await rig(204, { pace: 'every: 10m' })
    await some('delivered', 3)
    const { page } = await open(`${url}/`)
    await page.locator('.alerts .meta a[href^="/alerts/"]').first().click()
    await page.locator('header.story').waitFor()
    let requests = 0
    const { promise: seen, resolve: goOn } = Promise.withResolvers<void>()
    await page.route(`${url}/`, async (route) => {
      requests += 1
      if (requests === 1) return route.abort()
      await seen
      return route.continue()
    })
    await page.goBack()
    await page.getByRole('alert').waitFor()
    goOn()
    await page.locator('ol.alerts').waitFor()
    expect(await page.getByRole('alert').isVisible()).toBe(false)
  })

  it('a reader can stop updates, and go on', async () => {
    const { url, sandbox, some } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    // Also one whose answer is on its way.
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await page.route(`${url}/`, async (route) => {
      const response = await route.fetch()
      asked.resolve()
      await released.promise
      const body = (await response.text()).replace('<main>', '<main><p>read before the pause</p>')
      await route.fulfill({ response, body })
    })
    await asked.promise
    await page.getByRole('button', { name: 'Pause updates' }).click()
    released.resolve()
    sandbox.fire({ headline: 'fired while updates were paused' })
    await some('delivered', 4)
    // It ticks on: the page is there, and does not fetch.
    const age = page.locator('.facts time[data-age]').first()
    const shown = await age.textContent()
    await until('ages tick', async () => (await age.textContent()) !== shown)
    expect(await page.getByText(/fired while updates were paused|read before the pause/).count()).toBe(0)
    await page.getByRole('button', { name: 'Go on updating' }).click()
    await page.getByText('fired while updates were paused').waitFor()
    // One may be on its way still.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })
})

describe('the keyboard alone', () => {
  it('reaches all that the mouse does, in the order of the page, opens and leaves the dialog', async () => {
    const { url, some, sinkNow } = await rig(204)
    await some('delivered', 3)
    const { page } = await open(url)
    const wanted = await page.evaluate(
      `[...document.querySelectorAll('a[href], button, summary')].filter((each) => each.checkVisibility()).map((each) => each.textContent)`,
    )
    const reached: unknown[] = []
    for (let at = 0; at < (wanted as unknown[]).length; at += 1) {
      await page.keyboard.press('Tab')
      const focus = `[document.activeElement.textContent, getComputedStyle(document.activeElement).outlineStyle]`
      const [text, outline] = (await page.evaluate(focus)) as [string, string]
      expect([text, outline]).not.toEqual([text, 'none'])
      reached.push(text)
    }
    expect(reached).toEqual(wanted)

    await page.getByRole('button', { name: 'Pause', exact: true }).focus()
    await page.keyboard.press('Enter')
    const focused = () =>
      page.evaluate(`document.activeElement.type + ' ' + document.activeElement.textContent`)
    expect(await focused()).toBe('password ')
    await page.keyboard.press('Escape')
    expect([await page.locator('#act').isVisible(), await focused()]).toEqual([false, 'button Pause'])
    await page.keyboard.press('Enter')
    await page.keyboard.type(adminToken)
    await page.keyboard.press('Enter')
    await said(page).filter({ hasText: 'Done: hook is paused.' }).waitFor()
    expect([await sinkNow(), await focused()]).toMatchObject([{ state: 'paused' }, 'button Close'])
    await page.keyboard.press('Enter')
    expect(await page.locator('#act').isVisible()).toBe(false)
  })
})

import { describe, expect, it, onTestFinished } from 'vitest'
import { rowStates } from '../../src/admin/views/delivery-view.ts'
import { rig as admin } from '../admin/rig.ts'
import { ago, row, sink, source, status } from '../admin/views.ts'
import { startApp } from '../support/app.ts'
import { api, bridgeConfig } from '../support/bridge.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { accessibilityFindings, overflowPx, smallTargets, useBrowser } from './browser.ts'
import { brokenBridge } from './rig.ts'

/** How the status page looks and reads in a real browser: in both languages and themes, wide and narrow, well and broken. */
const redis = useRedis()
const open = useBrowser()

/** In how many pieces each instant of a sentence is shown. */
const piecesOfTimes = `[...document.querySelectorAll('bdi:has(> time)')].map((each) => each.getClientRects().length)`

describe.each(['en', 'fa'] as const)('the page in %s', (language) => {
  it.each([
    ['light', 1_200],
    ['light', 360],
    ['dark', 1_200],
    ['dark', 360],
  ] as const)(
    'has nothing that axe-core finds, fits, and has no target below 24 px: %s, %i px wide',
    async (colorScheme, width) => {
      const { url } = await brokenBridge(redis, language)
      const look = { colorScheme, width }
      const { page, complaints } = await open(url, look)
      const story = await page.locator('.alerts .meta a[href^="/alerts/"]').first().getAttribute('href')
      const others = look.colorScheme === 'dark' ? [] : ['/?state=dead&sink=refusing', '/alerts/main/4711']
      for (const path of ['/', story ?? '', ...others]) {
        await page.goto(url + path)
        const found = [await accessibilityFindings(page), await smallTargets(page), await overflowPx(page)]
        expect([look, path, ...found]).toEqual([look, path, [], [], 0])
      }
      await page.goto(url)
      await page.locator('#sink-hook .act').first().click()
      expect([look, 'dialog', await accessibilityFindings(page), await smallTargets(page)]).toEqual([
        ...[look, 'dialog', [], []],
      ])
      expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
    },
  )

  it('without JavaScript shows no button that would do nothing, and says so', async () => {
    const { url } = await brokenBridge(redis, language)
    const { page } = await open(url, { javaScriptEnabled: false })
    const story = await page.locator('.alerts .meta a[href^="/alerts/"]').first().getAttribute('href')
    for (const path of ['/', story ?? '']) {
      await page.goto(url + path)
      expect(await page.locator('button:visible').count()).toBe(0)
      expect(await page.locator('noscript p').isVisible()).toBe(true)
    }
    await page.goto(url)
    await page.locator('.search summary').click()
    expect(await page.locator('button:visible').count()).toBe(1)
    await page.locator('.search [name=id]').fill('1')
    await page.locator('.search button').click()
    await page.waitForURL(/[?&]id=1&/)
    expect(await page.locator('.alerts > li').count()).toBe(1)
  })

  it('fits into any width with a long queue and a sink that rests', async () => {
    const sinks = [
      sink({ waiting: 8_929, oldestWaitingAt: ago(331), drainSeconds: 8_929, deliveredToday: 20_481 }),
      sink({ name: 'down', state: 'open', reason: 'server_error: 503', failingSince: ago(89), dead: 1_204 }),
      sink({
        name: 'trading-system-2',
        waiting: 7_596,
        oldestWaitingAt: ago(4_331),
        lastResult: { at: ago(1_223), kind: 'retry', text: 'server_error: 503 maintenance' },
      }),
      // The longest name that there can be, with no place to break it.
      sink({ name: 'w'.repeat(40) }),
    ]
    const note = `another replica polls (running since ${ago(99)}); its lease ends at ${ago(-9)} unless it is renewed`
    const sources = [source({ name: 'w'.repeat(40), notes: [note, note.slice(8)] })]
    const { app } = admin(
      { status: async () => status({ sinks, sources }) },
      { display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language }) },
    )
    onTestFinished(() => app.close())
    const { page } = await open(await app.listen({ port: 0, host: '127.0.0.1' }), { width: 360 })
    for (const width of [320, 360, 700, 870, 1_000, 1_200, 1_366]) {
      await page.setViewportSize({ width, height: 900 })
      expect([width, await overflowPx(page)]).toEqual([width, 0])
      // On two lines of an English sentence, the brackets of a Persian time would be turned.
      if (language === 'fa') expect(await page.evaluate(piecesOfTimes), String(width)).toEqual([1, 1, 1, 1])
    }
    // As in a font that is wider than the one of this machine.
    await page.evaluate("document.body.style.letterSpacing = '.05em'")
    await page.setViewportSize({ width: 360, height: 900 })
    expect(await overflowPx(page)).toBe(0)
  })

  it.each(['light', 'dark'] as const)(
    'is as easy to read with alerts that were tried again and a list that goes on, also once it is stale: %s',
    async (colorScheme) => {
      const data = rowStates.map((state, at) =>
        row({ id: at, state, attempts: 3, reason: 'server_error: 503' }),
      )
      const search = async () => ({ data, looked: data.length, cursor: 'older' })
      const { app } = admin(
        { deliveries: { search } as never },
        { display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language }) },
      )
      onTestFinished(() => app.close())
      const { page } = await open(await app.listen({ port: 0, host: '127.0.0.1' }), {
        colorScheme,
        width: 360,
      })
      expect([await accessibilityFindings(page), await smallTargets(page)]).toEqual([[], []])
      await page.locator('html[data-painted]').waitFor()
      await app.close()
      await page.getByRole('alert').waitFor()
      expect([await accessibilityFindings(page), await smallTargets(page)]).toEqual([[], []])
    },
  )

  it('shows hostile text and never runs it, and keeps its direction to itself', async () => {
    const { url } = await brokenBridge(redis, language, 5)
    const { page, complaints } = await open(url)
    page.on('dialog', () => expect.fail('a script of a headline ran'))
    for (const path of [
      '/',
      new URL(
        (await page
          .locator('.alerts li', { has: page.locator('.title', { hasText: 'evil' }) })
          .locator('.meta a[href^="/alerts/"]')
          .getAttribute('href')) ?? '',
        url,
      ).pathname,
    ]) {
      await page.goto(url + path)
      await page.getByText('<img src=x onerror=alert(1)>').first().waitFor()
      expect(await page.evaluate('[document.images.length, document.scripts.length]')).toEqual([0, 1])
    }
    await page.goto(url)
    const direction = (text: string) => page.locator('.title bdi', { hasText: text }).getAttribute('dir')
    expect([await direction('فولاد از'), await direction('evil')]).toEqual(['rtl', 'ltr'])
    expect(complaints).toEqual([])
  })
})

/** What is shown in the first frame that has the verdict, and whether the page has asked for more by then; runs before its script. */
const watchFrames = `
  window.asked = false
  const Source = EventSource
  EventSource = class extends Source { constructor(address) { super(address); asked = true } }
  const shown = (selector) => document.querySelector(selector)?.checkVisibility() === true
  const look = () => {
    if (shown('.headline')) window.firstFrame = { list: shown('ol.alerts'), asked }
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)`

const whole = `new Promise((resolve) => {
  const look = () => document.querySelector('ol.alerts')?.checkVisibility() && document.documentElement.hasAttribute('data-painted')
    ? setTimeout(resolve, 100) : requestAnimationFrame(look)
  look()
})`

it('paints the verdict alone and asks for nothing before, then all that the document has', async () => {
  const { url } = await brokenBridge(redis, 'en')
  const { page } = await open('about:blank')
  await page.addInitScript(watchFrames)
  for (const path of ['/', '/?state=dead']) {
    await page.goto(url + path)
    await page.evaluate(whole)
    expect([path, await page.evaluate('firstFrame')]).toEqual([path, { list: false, asked: false }])
  }
})

it('is where the reader was after a reload, and where an address points', async () => {
  const { url } = await brokenBridge(redis, 'en', 60)
  const { page } = await open(url)
  await page.evaluate(`${whole}.then(() => scrollTo(0, 3000))`)
  await page.reload()
  expect(await page.evaluate(`${whole}.then(() => Math.round(scrollY))`)).toBe(3_000)
  await page.goto('about:blank')
  await page.goto(`${url}/#deliveries`)
  const top = `${whole}.then(() => document.getElementById('deliveries').getBoundingClientRect().top)`
  expect(await page.evaluate(top)).toBeLessThan(100)
})

/** ROWS=100000 measures the first paint with as many kept deliveries as are kept by default; that takes five minutes. */
const count = Number(process.env['ROWS'] ?? 10_000)
const limitMs = 50_000 + count * 4

it(`${count} alerts are turned over page by page`, { timeout: limitMs + 30_000 }, async () => {
  const sandbox = await startSandbox({ history: count, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver({ answer: { status: 503 } })
  const sink = 'allowPrivateNetworks: true, retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }'
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, sink })
  const { url } = await startApp(text)
  const kept = async () =>
    (await api<{ sinks: { waiting: number; delayed: number }[] }>(url, '/api/v1/status')).sinks[0]
  await until('all are kept', async () => ((await kept())?.waiting ?? 0) > count - 50, limitMs)
  const { page } = await open(url)
  const paint = `new Promise((resolve) => new PerformanceObserver((list) => {
    for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime)
  }).observe({ type: 'paint', buffered: true }))`
  const other = await open(`${url}/healthz`)
  const [paints, floor]: [number[], number[]] = [[], []]
  for (let time = 0; time < 5; time += 1)
    for (const [each, into] of [
      [page, paints],
      [other.page, floor],
    ] as const) {
      await each.bringToFront()
      await each.reload()
      into.push((await each.evaluate(paint)) as number)
    }
  const listed = (times: number[]) => `${times.map(Math.round).join(', ')} ms`
  process.stdout.write(
    `first paint with ${count} kept deliveries: ${listed(paints)}; of one word, from the same server: ${listed(floor)}\n`,
  )
  await page.bringToFront()
  for (let at = 0; at < 5; at += 1) {
    const first = await page.locator('.alerts > li').first().getAttribute('data-key')
    await page.getByRole('link', { name: 'older' }).click()
    await page.locator(`[data-key="${first}"]`).waitFor({ state: 'detached' })
    expect(await page.locator('.alerts > li').count()).toBe(60)
  }
})

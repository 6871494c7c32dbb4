import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'

/** A real Chromium for the test file that calls this at its top level; its windows close with the test. */
export function useBrowser() {
  let browser: Browser | undefined
  beforeAll(async () => {
    const executablePath = process.env['CHROMIUM'] ?? ''
    if (executablePath === '')
      throw new Error('npm run test:browser finds a Chromium and names it in CHROMIUM')
    browser = await chromium.launch({ executablePath, args })
  })
  afterAll(async () => browser?.close())

  return async (url: string, look: Look = {}): Promise<Window> => {
    if (!browser) throw new Error('the browser is not started yet')
    const { width = 1200, height = 900, colorScheme = 'light', javaScriptEnabled = true } = look
    const { httpCredentials } = look
    const viewport = { width, height }
    const context = await browser.newContext({
      ...{ viewport, colorScheme, locale: 'en-GB', javaScriptEnabled },
      ...(httpCredentials && { httpCredentials }),
    })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    page.setDefaultTimeout(10_000)
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(url)
    return { page, complaints }
  }
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: 'light' | 'dark'
  readonly javaScriptEnabled?: boolean
  /** What the person types where a server asks for a login. */
  readonly httpCredentials?: { readonly username: string; readonly password: string }
}

interface Window {
  readonly page: Page
  /** Errors and warnings of the console, such as what the policy of the page refused. */
  readonly complaints: readonly string[]
}

/** As root in a container, without a graphics card, and without the browser's own calls to the network. */
const args = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  // A name of this machine that browsers do not trust as they trust 127.0.0.1: the page as it is over plain HTTP.
  '--host-resolver-rules=MAP bridge.test 127.0.0.1',
]

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe-core finds against WCAG 2.2 AA and its best practices: rule, and the elements. */
export async function accessibilityFindings(page: Page): Promise<string[]> {
  await page.evaluate(axeSource)
  return page.evaluate(`axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 160) + ' ' + failureSummary)))`)
}

/** Links, buttons and fields that are seen and are smaller than 24 px in one direction. */
export async function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('a[href], button, input, select, summary')].flatMap((each) => {
    const { width, height } = each.getBoundingClientRect()
    const seen = width > 0 && each.checkVisibility({ visibilityProperty: true })
    return seen && Math.min(width, height) < 23.9 ? [each.outerHTML.slice(0, 120) + ' ' + Math.round(width) + 'x' + height] : []
  })`)
}

/** By how many pixels the page is wider than the window. */
export async function overflowPx(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
}

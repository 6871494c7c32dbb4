import { type App, type AppOptions, createApp } from '../../src/app/app.ts'
import { parseConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { onTestFinished } from './finished.ts'

/** The whole bridge from the text of a config, stopped when the test ends. */
export interface StartedApp {
  readonly app: App
  readonly url: string
  /** Every log line so far, parsed. */
  readonly lines: readonly Record<string, unknown>[]
}

export function configOf(text: string): Config {
  const loaded = parseConfig(text, { env: process.env, folder: '/' })
  if (!loaded.ok)
    throw new Error(loaded.mistakes.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  return loaded.config
}

export function buildApp(text: string, options: Partial<AppOptions> = {}) {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const app = createApp(configOf(text), {
    log: createLogger({ level: 'info', destination: { write } }),
    ...options,
  })
  onTestFinished(() => app.stop())
  return { app, lines }
}

export async function startApp(text: string, options: Partial<AppOptions> = {}): Promise<StartedApp> {
  const { app, lines } = buildApp(text, options)
  return { app, url: await app.start(), lines }
}

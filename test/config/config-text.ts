import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** The fixtures, one file a rule: those in `bad` must be refused, those in `warn` and `good` load; `# → ` lines say what is told. */
export const fixturesFolder = resolve(import.meta.dirname, 'fixtures')

/** What the fixtures may fill in. Every secret in them holds CANARY, so that a leak is one word to look for. */
export const fixtureEnv = {
  EMPTY: '',
  SECRET_BASE_URL: 'CANARY-from-env',
  WORD: 'lots',
  HOST: 'api.example.com',
  PORT: '8443',
  NUMBER: '1234',
  FLAG: 'true',
}

interface Fixture {
  readonly name: string
  readonly path: string
  readonly text: string
  /** The lines that are expected, without the name of the file. */
  readonly told: readonly string[]
}

export function fixtures(kind: 'bad' | 'warn' | 'good'): Fixture[] {
  return readdirSync(resolve(fixturesFolder, kind))
    .sort()
    .map((file) => {
      const path = resolve(fixturesFolder, kind, file)
      const text = readFileSync(path, 'utf8')
      const told = text.split('\n').flatMap((line) => (line.startsWith('# → ') ? [line.slice(4)] : []))
      return { name: `${kind}/${file.replace('.yaml', '')}`, path, text, told }
    })
}

/** By its name, such as `good/least`. */
export function fixture(name: string): Fixture {
  const found = [...fixtures('bad'), ...fixtures('warn'), ...fixtures('good')].find(
    (each) => each.name === name,
  )
  if (found === undefined) throw new Error(`there is no fixture ${name}`)
  return found
}

/** A config of one line a section; `sections` replace or add sections, `null` leaves one out. */
export function configText(sections: Record<string, string | null> = {}): string {
  const all: Record<string, string | null> = {
    sources: '{ main: { baseUrl: "https://api.example.com", token: CANARY, budget: { unitsPerDay: 2000 } } }',
    sinks: '{ ops: { type: webhook, url: "https://hooks.example.com/a" } }',
    routes: '[{ sinks: [ops] }]',
    ...sections,
  }
  const lines = Object.entries(all).map(([key, value]) => (value === null ? '' : `${key}: ${value}\n`))
  return lines.join('')
}

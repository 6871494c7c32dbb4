import { describe, expect, it } from 'vitest'
import { configJsonSchemaText } from '../../src/config/json-schema.ts'
import { loadConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import { redactConfig, showConfig } from '../../src/config/redact.ts'
import { fixtureEnv, fixtures } from './config-text.ts'

describe.each(fixtures('bad'))('$name', ({ path, told }) => {
  const loaded = loadConfig(path, fixtureEnv)

  it('is refused with every mistake, in the order of the lines, and no other', () => {
    expect(
      loaded.ok ? [] : loaded.mistakes.map((mistake) => formatMistake('f', mistake).replace(/^f:\s*/, '')),
    ).toEqual(told)
    expect(told.length).toBeGreaterThan(0)
  })

  it('gives no secret away', () => {
    expect(JSON.stringify(loaded)).not.toContain('CANARY')
  })
})

describe.each([...fixtures('good'), ...fixtures('warn')])('$name', ({ path, told }) => {
  const loaded = loadConfig(path, fixtureEnv)

  it('is taken, with these warnings and no others', () => {
    if (!loaded.ok) throw new Error(loaded.mistakes.map((mistake) => formatMistake('f', mistake)).join('\n'))
    const warnings = loaded.warnings.map((warning) => formatMistake('f', warning).replace(/^f:\s*/, ''))
    expect(warnings).toEqual(told)
  })

  it('gives no secret away, however it is printed', () => {
    if (!loaded.ok) throw new Error('refused')
    const { config } = loaded
    const printed = [showConfig(config), JSON.stringify(redactConfig(config)), JSON.stringify(config)]
    for (const text of printed) expect(text).not.toMatch(/CANARY|Q0FOQVJZ/)
  })
})

it('has a warning for each warn fixture', () => {
  for (const { name, told } of fixtures('warn')) expect([name, told.length]).toEqual([name, 1])
})

it('the schema knows nothing of any config', () => {
  expect(configJsonSchemaText()).not.toContain('CANARY')
})

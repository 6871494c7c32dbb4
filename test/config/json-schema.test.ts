import { readFileSync } from 'node:fs'
import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isMap, parse, parseDocument } from 'yaml'
import { configJsonSchema, configJsonSchemaText } from '../../src/config/json-schema.ts'
import { parseConfig } from '../../src/config/load.ts'
import { configText, fixture, fixtures, fixturesFolder } from './config-text.ts'

/** Fastify's validator is the one JSON Schema validator at hand; it judges a config as the body of a request. */
const app = fastify({
  ajv: { customOptions: { strict: false, coerceTypes: false, removeAdditional: false, useDefaults: false } },
})

beforeAll(async () => {
  const { $schema: _, ...body } = configJsonSchema()
  app.post('/', { schema: { body } }, () => 'valid')
  await app.ready()
})
afterAll(() => app.close())

async function isValid(config: unknown): Promise<boolean> {
  const answer = await app.inject({ method: 'POST', url: '/', payload: config as object })
  return answer.statusCode === 200
}

function yamlOf(text: string): unknown {
  return parse(text, { merge: true })
}

/** The paths of all values in it. */
function pathsOf(value: unknown): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const key = Array.isArray(value) ? Number(name) : name
    return [[key], ...pathsOf(inner).map((path) => [key, ...path])]
  })
}

describe('the JSON Schema', () => {
  it('is the one that is committed', () => {
    expect(readFileSync('config/alert-bridge.schema.json', 'utf8')).toBe(configJsonSchemaText())
  })

  it('is draft 7', () => {
    expect(configJsonSchema()['$schema']).toBe('http://json-schema.org/draft-07/schema#')
  })

  it.each([...fixtures('good'), ...fixtures('warn')])('takes $name as it is written', async ({ text }) => {
    expect(await isValid(yamlOf(text))).toBe(true)
  })

  it.each(['config/minimal.yaml', 'config/example.yaml'])('takes %s', async (path) => {
    expect(await isValid(yamlOf(readFileSync(path, 'utf8')))).toBe(true)
  })

  it('takes every section that is left empty, and every text between blanks, where the loader takes it', async () => {
    const { text } = fixture('good/every-section')
    const refused: string[] = []
    let taken = 0
    for (const path of pathsOf(yamlOf(text))) {
      const changed = parseDocument(text)
      const old = changed.getIn(path)
      if (typeof old !== 'string' && !isMap(old)) continue
      changed.setIn(path, typeof old === 'string' ? ` ${old} ` : null)
      if (!parseConfig(String(changed), { env: {}, folder: fixturesFolder }).ok) continue
      taken += 1
      if (!(await isValid(changed.toJS()))) refused.push(path.join('.'))
    }
    expect(refused).toEqual([])
    expect(taken).toBeGreaterThan(30)
  })

  it('takes capital letters where the loader does', async () => {
    const mail = `{ type: email, smtp: "smtp://mail.example.com", from: a@b.ir, to: [a@b.ir], dkim: { domain: Example.com, selector: S1, keyFile: k } }`
    const hook = `{ type: webhook, url: "https://hooks.example.com/a", template: "{{ title }}", contentType: Text/HTML }`
    const text = configText({ sinks: `{ ops: ${hook}, desk: ${mail} }` })
    expect(await isValid(yamlOf(text))).toBe(true)
  })

  it.each([
    'bad/unknown-key',
    'bad/sections-missing',
    'bad/name',
    'bad/token-missing',
    'bad/twin-both',
    'bad/sink-type',
    'bad/sink-of-its-type-only',
    'bad/sink-durations',
    'bad/poll-numbers',
    'bad/http-listen',
    'bad/log-level',
    'bad/route-no-sinks',
    'bad/route-patterns',
    'bad/route-limits',
  ])('refuses %s', async (name) => {
    expect(await isValid(yamlOf(fixture(name).text))).toBe(false)
  })
})

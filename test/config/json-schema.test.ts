import { readFileSync } from 'node:fs'
import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { configJsonSchema, configJsonSchemaText } from '../../src/config/json-schema.ts'
import { configText, fixture, fixtures } from './config-text.ts'

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

describe('the JSON Schema', () => {
  it('is the one that is committed', () => {
    expect(readFileSync('config/alert-bridge.schema.json', 'utf8')).toBe(configJsonSchemaText())
  })

  it('is draft 7', () => {
    expect(configJsonSchema()['$schema']).toBe('http://json-schema.org/draft-07/schema#')
  })

  // A section without a value is nothing to the loader, but a mistake in the eyes of an editor.
  const good = [...fixtures('good'), ...fixtures('warn')].filter(({ name }) => name !== 'good/empty-sections')
  it.each(good)('takes $name as it is written', async ({ text }) => {
    expect(await isValid(yamlOf(text))).toBe(true)
  })

  it.each(['config/minimal.yaml', 'config/example.yaml'])('takes %s', async (path) => {
    expect(await isValid(yamlOf(readFileSync(path, 'utf8')))).toBe(true)
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

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { documented, type OpenApi } from '../support/openapi.ts'
import { rig } from './rig.ts'
import { status } from './views.ts'

const parts = { rules: async () => [] }

async function document(): Promise<OpenApi> {
  return (await rig(parts).app.inject('/api/v1/openapi.json')).json()
}

test('the document is OpenAPI 3.1', async () => {
  const result = await new Validator().validate((await document()) as never)
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

test('every address that the reference names is in it, and the other way round, with parameters, body and answer', async () => {
  const { paths } = await document()
  const known = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`),
  )
  const reference = readFileSync(join(import.meta.dirname, '../../config/README.md'), 'utf8')
  const rows = reference.split('\n').filter((line) => /^\| `(GET|POST|DELETE) /.test(line))
  const named = [...rows.join('\n').matchAll(/`(GET|POST|DELETE) (\/[^`?]*)/g)].map(
    ([, method, path]) => `${method} ${path?.replaceAll(/\b[A-Z]+\b/g, '*')}`,
  )
  expect([...new Set(known)].sort()).toEqual([...new Set(named)].sort())

  const ids = Object.values(paths).flatMap((each) =>
    Object.values(each).map(({ operationId }) => operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
  const search = paths['/api/v1/deliveries']?.['get']?.parameters?.map(({ name }) => name)
  expect(search).toEqual(expect.arrayContaining(['symbol', 'state', 'since', 'limit', 'cursor']))
  const replay = paths['/api/v1/replay']?.['post']
  expect(replay?.parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header' }])
  expect(replay?.requestBody).toHaveProperty(['content', 'application/json', 'schema'])
  const takeKeys = Object.entries(paths).flatMap(([path, { post }]) =>
    post?.parameters?.some(({ name }) => name === 'Idempotency-Key') ? [path] : [],
  )
  expect(takeKeys.toSorted()).toEqual([
    ...['/api/v1/dead-letters/drop', '/api/v1/dead-letters/retry'],
    ...['/api/v1/orphans/{name}/drop', '/api/v1/orphans/{name}/move'],
    ...['/api/v1/quarantine/drop', '/api/v1/quarantine/retry', '/api/v1/replay', '/api/v1/silences'],
  ])
})

test.each([
  ['/readyz', '/readyz', 503],
  ['/alerts/{source}/{id}', '/alerts/main/1', 404],
  ['/api/v1/alerts', '/api/v1/alerts?limit=0', 400],
])('%s answers with a media type that is in it, also where it refuses', async (path, url, statusCode) => {
  const { paths } = await document()
  const { app } = rig({
    ...parts,
    status: async () => status({ redis: { ok: false } }),
  })
  const answer = await app.inject(url)
  expect(answer.statusCode).toBe(statusCode)
  const refusal = paths[path]?.['get']?.responses['default']
  const types = Object.keys(refusal?.content ?? { 'application/problem+json': 'by reference' })
  expect(types).toContain(String(answer.headers['content-type']).split(';')[0])
})

test('what an answer has and the document does not is a mistake of the test', async () => {
  const { answerOf, mistakesOf } = documented(await document())
  const { schema } = answerOf('/api/v1/dead-letters/groups')
  expect(mistakesOf(schema, { data: [], looked: 0, total: 0 })).toBe('')
  expect(mistakesOf(schema, { data: [], looked: 0, total: 0, more: 1 })).toContain('additional properties')
  expect(mistakesOf(schema, { data: [], looked: 'x' })).toContain('must be integer')
})

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as kinds from '../../src/sinks/definitions.ts'
import { sinkTypes } from '../../src/sinks/sink-config.ts'

const sinksFolder = join(import.meta.dirname, '../../src/sinks')

test('every folder of a sink is a type, called by the name that configs use', () => {
  const folders = readdirSync(sinksFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .filter((name) => existsSync(join(sinksFolder, name, 'sink.ts')))
  expect([...sinkTypes].sort()).toEqual(folders.sort())
  for (const [name, { schema }] of Object.entries(kinds)) expect(schema.shape.type.value).toBe(name)
})

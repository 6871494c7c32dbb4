import { expect, it } from 'vitest'
import { configSchemaCommand } from '../../src/cli/config-schema.ts'
import { configJsonSchema } from '../../src/config/json-schema.ts'
import { run } from '../support/cli.ts'

it('config-schema prints the JSON Schema, with and without --json', async () => {
  for (const args of [[], ['--json']]) {
    const { out, exitCode } = await run(configSchemaCommand(), ...args)
    expect(JSON.parse(out)).toEqual(configJsonSchema())
    expect(exitCode).toBe(0)
  }
})

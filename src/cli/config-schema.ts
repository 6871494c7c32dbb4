import type { Command } from 'commander'
import { configJsonSchemaText } from '../config/json-schema.ts'
import { namedCommand } from './command-texts.ts'
import { print } from './output/output.ts'

/** `config-schema`: the JSON Schema of the config, for editors. */
export function configSchemaCommand(): Command {
  return namedCommand('config-schema')
    .option('--json', 'print JSON (it always does)')
    .action(() => {
      print(configJsonSchemaText().trimEnd())
    })
}

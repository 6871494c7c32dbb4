import { Command } from 'commander'
import { configJsonSchemaText } from '../config/json-schema.ts'
import { print } from './output.ts'

/** `config-schema`: the JSON Schema of the config, for editors. */
export function configSchemaCommand(): Command {
  return new Command('config-schema')
    .description('print the JSON Schema of the config')
    .option('--json', 'print JSON (it always does)')
    .action(() => {
      print(configJsonSchemaText().trimEnd())
    })
}

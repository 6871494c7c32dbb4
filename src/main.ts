#!/usr/bin/env node
import { runCli } from './cli/cli.ts'
import { outputTold, watchOutput } from './cli/output.ts'

watchOutput((exitCode) => process.exit(exitCode))
const exitCode = await runCli(process.argv)
await outputTold()
process.exit(exitCode)

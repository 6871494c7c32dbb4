#!/usr/bin/env node

// A bridge reads its config later than this, so a wish that it read it again is met already; unheard it would end it.
if (process.argv.includes('run')) process.on('SIGHUP', () => {})
// By this signal Node.js opens its debugger, and with it everything to whoever is on this host. First of all: the rest
// takes its time to load.
process.on('SIGUSR1', () => {})
// Before the first of them is used. Names are looked up on half of these threads (four, where nobody says how many): two
// name servers that say nothing would keep every other name waiting, also that of the feed.
process.env['UV_THREADPOOL_SIZE'] ||= '16'

const { runCli } = await import('./cli/cli.ts')
const { outputFlushed: outputTold, watchOutput } = await import('./cli/output.ts')

watchOutput((exitCode) => process.exit(exitCode))
const exitCode = await runCli(process.argv)
await outputTold()
process.exit(exitCode)

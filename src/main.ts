#!/usr/bin/env node

import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

// Without a listener SIGHUP would end the process. The bridge has not read its config yet, so there is nothing to reload.
if (process.argv.includes('run')) process.on('SIGHUP', () => {})
// Nor would these end the first process of a container, which takes them only where it listens. Nothing runs yet that is to be ended.
if (process.argv.includes('run') && process.pid === 1)
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0))
// On SIGUSR1 Node.js opens its debugger, which gives any local user everything in this process. This comes before the
// imports, because they take time to load.
process.on('SIGUSR1', () => {})
// Must be set before the first thread of the pool is used. DNS lookups use half of these threads (of four by default):
// then two names whose servers do not answer would block all other lookups, also that of the feed.
process.env['UV_THREADPOOL_SIZE'] ||= '16'

// What Node.js makes of the sources and packages is kept beside the packages: later starts take about half the time. Where
// nothing can be written there, as in a container, nothing is kept; NODE_COMPILE_CACHE names another folder.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/alert-bridge'))

const { runCli } = await import('./cli/cli.ts')
const { outputFlushed, watchOutput } = await import('./cli/output.ts')

watchOutput((exitCode) => process.exit(exitCode))
const exitCode = await runCli(process.argv)
await outputFlushed()
process.exit(exitCode)

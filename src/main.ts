#!/usr/bin/env node

// Whoever installed the package or unpacked the archive may have any Node.js, and one that does not fit would end with a stack
// trace. So nothing is imported before this, since an import of what that one lacks fails before any line of this file runs.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || major === 23 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `alert-bridge needs Node.js >= 22.19 (not 23), and ${process.execPath} is ${process.versions.node}\n`,
  )
  process.exit(1)
}

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
const { enableCompileCache } = await import('node:module')
const { join } = await import('node:path')
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/alert-bridge'))

const { runCli } = await import('./cli/cli.ts')
const { outputFlushed, watchOutput } = await import('./cli/output/output.ts')

watchOutput((exitCode) => process.exit(exitCode))
const exitCode = await runCli(process.argv)
await outputFlushed()
process.exit(exitCode)

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { findServer } from '../../../src/store/connection/embedded-paths.ts'
import { alertmanagerVersion } from './alertmanager.ts'
import { nodeRedVersion } from './node-red.ts'

/** The machine, and what ran on it. */
export function versions(arms: readonly string[]) {
  const redis = execFileSync(findServer(), ['--version'], { encoding: 'utf8' })
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model.trim(),
    versions: [
      ...[`Node.js ${process.version}`, `Redis ${/v=(\S+)/.exec(redis)?.[1]}`],
      ...['bullmq', 'undici'].map((name) => `${name} ${packageVersion(name)}`),
      ...(arms.includes('alertmanager') ? [alertmanagerVersion()] : []),
      ...(arms.includes('node-red') ? [`Node-RED ${nodeRedVersion}`] : []),
    ],
  }
}

function packageVersion(name: string): string {
  const manifest = readFileSync(
    join(import.meta.dirname, '../../../node_modules', name, 'package.json'),
    'utf8',
  )
  return (JSON.parse(manifest) as { version: string }).version
}

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const cache = join(import.meta.dirname, '../../.cache/prometheus')
const unpacked = join(cache, 'usr/bin/promtool')

/** Runs promtool: the one on PATH, or the one in Debian's package, which is fetched once and only unpacked. */
export function promtool(args: readonly string[], input?: string): string {
  return execFileSync(binary(), args, { encoding: 'utf8', ...(input === undefined ? {} : { input }) })
}

function binary(): string {
  if (spawnSync('promtool', ['--version']).error === undefined) return 'promtool'
  if (existsSync(unpacked)) return unpacked
  mkdirSync(cache, { recursive: true })
  const download = () => execFileSync('apt-get', ['download', 'prometheus'], { cwd: cache, stdio: 'pipe' })
  try {
    try {
      download()
    } catch {
      execFileSync('apt-get', ['update', '-qq'], { stdio: 'pipe' })
      download()
    }
  } catch (cause) {
    throw new Error('promtool is not on PATH and could not be had from apt: install prometheus', { cause })
  }
  const name = readdirSync(cache).find((each) => each.endsWith('.deb'))
  execFileSync('dpkg-deb', ['-x', join(cache, name ?? ''), cache])
  return unpacked
}

import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { testFolder } from '../support/process.ts'

/** What a package or an archive says that is started by a Node.js which its user had already. */
const root = join(import.meta.dirname, '../..')
const main = join(root, 'src/main.ts')

/** What makes Node.js give itself out for another version. */
function preload(version: string): string {
  const path = join(testFolder(), 'version.cjs')
  const versions = `{ ...process.versions, node: '${version}' }`
  writeFileSync(path, `Object.defineProperty(process, 'versions', { value: ${versions} })`)
  return path
}

describe('Node.js', () => {
  it.each([
    ['18.20.4', false],
    ['20.20.2', false],
    ['22.18.0', false],
    ['22.19.0', true],
    ['23.11.1', false],
    ['24.0.0', true],
    ['26.10.0', true],
  ])('%s is one that fits: %s; one that does not is told so in a sentence', (version, fits) => {
    const run = spawnSync(process.execPath, ['-r', preload(version), main, '--version'], { encoding: 'utf8' })
    const told = `alert-bridge needs Node.js >= 22.19 (not 23), and ${process.execPath} is ${version}\n`
    expect([run.status, run.stderr]).toEqual(fits ? [0, ''] : [1, told])
  })

  it('is looked at before anything is imported, which an old one may lack', () => {
    expect(readFileSync(main, 'utf8')).not.toMatch(/^(import|export)\b.* from /m)
  })

  it('that does not know an option of the archive’s command is told so, too', () => {
    const folder = testFolder()
    const [, command = ''] = /<<'END'\n([\s\S]*?\n)END\n/.exec(
      readFileSync(join(root, 'config/offline/pack.sh'), 'utf8'),
    ) ?? ['']
    writeFileSync(join(folder, 'alert-bridge'), command)
    mkdirSync(join(folder, 'dist'))
    cpSync(join(root, 'src/main.ts'), join(folder, 'dist/main.js'))
    mkdirSync(join(folder, 'bin'))
    const old = `case "$*" in --disable-sigusr1*) echo "node: bad option: --disable-sigusr1" >&2; exit 9 ;; esac`
    const node = `#!/bin/sh\n${old}\nexec '${process.execPath}' -r '${preload('20.20.2')}' "$@"\n`
    writeFileSync(join(folder, 'bin/node'), node)
    for (const name of ['alert-bridge', 'bin/node']) chmodSync(join(folder, name), 0o755)
    const run = spawnSync(join(folder, 'alert-bridge'), ['--version'], {
      encoding: 'utf8',
      env: { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` },
    })
    expect(run.stderr).toMatch(/^alert-bridge needs Node\.js >= 22\.19 \(not 23\), and \S+ is 20\.20\.2\n$/)
    expect(run.status).toBe(1)
  })
})

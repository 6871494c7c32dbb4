import { execFile, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { testFolder } from './support/process.ts'

/**
 * setup.sh in an empty checkout, with nothing on PATH but what a machine surely has, this Node.js, and an npm that notes
 * what it is asked for: what the registry gives is not the point here.
 */
const root = join(import.meta.dirname, '..')
const tools = ['sh', 'cmp', 'cp', 'mkdir', 'rm', 'uname', 'id', 'cat', 'chmod', 'sleep']

/** Like npm, it leaves out the development packages where the environment says so, unless it is told to include them. */
const npm = `#!/bin/sh
echo "$*" >> npm.log
case "$1 $*" in
  ci*)
    rm -rf node_modules; mkdir -p node_modules/bullmq
    case "$*" in
      *--include=dev*) ;;
      *) if [ "$NODE_ENV" = production ] || [ "$npm_config_omit" = dev ]; then exit 0; fi ;;
    esac
    mkdir -p node_modules/vitest; echo '{}' > node_modules/vitest/package.json ;;
  install*)
    mkdir -p .node/node_modules/.bin
    rm -f .node/node_modules/.bin/node
    if [ -f npm-brings ]; then cp npm-brings .node/node_modules/.bin/node; else exit 1; fi ;;
esac
`

class Checkout {
  readonly folder = testFolder()
  readonly bin = join(this.folder, 'bin')

  constructor() {
    mkdirSync(this.bin)
    for (const name of ['setup.sh', 'package-lock.json'])
      copyFileSync(join(root, name), join(this.folder, name))
    for (const name of tools) symlinkSync(found(name), join(this.bin, name))
    this.program('npm', npm)
    this.node(process.execPath)
    this.program('redis-server')
  }

  program(name: string, text = '#!/bin/sh\n', folder = this.bin): string {
    const path = join(folder, name)
    this.remove(path)
    writeFileSync(path, text, { mode: 0o755 })
    chmodSync(path, 0o755)
    return path
  }

  /** The Node.js of the machine. */
  node(path: string): void {
    this.program('node', `#!/bin/sh\nexec '${path}' "$@"\n`)
  }

  /** The Node.js that an earlier set-up has fetched. */
  fetched(text: string): void {
    mkdirSync(join(this.folder, '.node/node_modules/.bin'), { recursive: true })
    this.program('node', text, join(this.folder, '.node/node_modules/.bin'))
  }

  remove(path: string): void {
    spawnSync('rm', ['-rf', join(path)])
  }

  has(path: string): boolean {
    return existsSync(join(this.folder, path))
  }

  /** What npm was asked for so far. */
  asked(): string[] {
    return this.has('npm.log') ? readFileSync(join(this.folder, 'npm.log'), 'utf8').trim().split('\n') : []
  }

  /** Sources setup.sh as the npm scripts do, and tells which Node.js comes first after it. */
  run(env: Record<string, string> = {}) {
    const script = '. ./setup.sh && command -v node && node -p process.version'
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script], {
      cwd: this.folder,
      encoding: 'utf8',
      env: { PATH: this.bin, HOME: this.folder, ...env },
    })
    return { status, stdout, stderr, node: stdout.split('\n')[0] }
  }
}

function found(name: string): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const folder = [...folders, '/usr/bin', '/bin'].find((each) => existsSync(join(each, name)))
  if (folder === undefined) throw new Error(`there is no ${name} on this machine`)
  return join(folder, name)
}

const oldNode = '#!/bin/sh\ncase "$1" in -e) exit 1 ;; *) echo v20.11.0 ;; esac\n'
const brokenNode = '#!/bin/sh\nexit 126\n'
const goodRedis = '#!/bin/sh\n[ "$1" = --version ] && echo Redis server v=7.0.15 sha=00000000:0\n'
const goodNode = `#!/bin/sh\nexec '${process.execPath}' "$@"\n`

describe('the set-up', () => {
  it('installs once, and is silent after', () => {
    const checkout = new Checkout()
    expect(checkout.run()).toMatchObject({ status: 0, node: join(checkout.bin, 'node') })
    expect(checkout.run()).toMatchObject({ status: 0, stderr: '' })
    expect(checkout.asked()).toHaveLength(1)
    writeFileSync(join(checkout.folder, 'package-lock.json'), '{}')
    checkout.run()
    expect(checkout.asked()).toHaveLength(2)
  })

  it.each([{ NODE_ENV: 'production' }, { npm_config_omit: 'dev' }])(
    'installs what the tests and the demo need, also with %j',
    (env) => {
      const checkout = new Checkout()
      expect(checkout.run(env)).toMatchObject({ status: 0 })
      expect(checkout.has('node_modules/vitest/package.json')).toBe(true)
    },
  )

  it('installs again when the packages for development are gone', () => {
    const checkout = new Checkout()
    checkout.run()
    checkout.remove(join(checkout.folder, 'node_modules/vitest'))
    expect(checkout.run()).toMatchObject({ status: 0 })
    expect(checkout.has('node_modules/vitest/package.json')).toBe(true)
  })

  it('that could not install everything says so and does not count as done', () => {
    const checkout = new Checkout()
    checkout.program('npm', '#!/bin/sh\nmkdir -p node_modules\n')
    for (let time = 0; time < 2; time += 1)
      expect(checkout.run()).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/setup: npm ci .*vitest/),
      })
    checkout.program('npm', npm)
    expect(checkout.run()).toMatchObject({ status: 0 })
  })
})

describe('Node.js', () => {
  it.each([
    ['too old', oldNode],
    ['broken', brokenNode],
  ])(
    'that was fetched once and is %s is fetched again, where the machine has none that fits',
    (_what, old) => {
      const checkout = new Checkout()
      checkout.program('node', oldNode)
      checkout.fetched(old)
      checkout.program('npm-brings', goodNode, checkout.folder)
      expect(checkout.run()).toMatchObject({
        status: 0,
        node: join(checkout.folder, '.node/node_modules/.bin/node'),
      })
      expect(checkout.asked().filter((line) => line.startsWith('install'))).toHaveLength(1)
      checkout.run()
      expect(checkout.asked().filter((line) => line.startsWith('install'))).toHaveLength(1)
    },
  )

  it.each([
    ['20.20.0', false],
    ['22.18.0', false],
    ['22.19.0', true],
    ['23.11.1', false],
    ['24.0.0', true],
    ['26.10.0', true],
  ])('of the machine in version %s fits, as its package says: %s', (version, fits) => {
    const checkout = new Checkout()
    const preload = join(checkout.folder, 'version.cjs')
    const versions = `{ ...process.versions, node: '${version}' }`
    writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${versions} })`)
    checkout.program('node', goodNode.replace('"$@"', `-r '${preload}' "$@"`))
    checkout.program('npm-brings', goodNode, checkout.folder)
    const place = fits ? checkout.bin : join(checkout.folder, '.node/node_modules/.bin')
    expect(checkout.run()).toMatchObject({ status: 0, node: join(place, 'node') })
    const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
    expect(engines.node).toBe('^22.19.0 || >=24')
  })

  it('of the machine is taken when it fits and the fetched one does not', () => {
    const checkout = new Checkout()
    checkout.fetched(brokenNode)
    expect(checkout.run()).toMatchObject({ status: 0, node: join(checkout.bin, 'node') })
    expect(checkout.asked()).toEqual([expect.stringMatching(/^ci /)])
  })

  it('that cannot be had is one sentence', () => {
    const checkout = new Checkout()
    checkout.program('node', oldNode)
    expect(checkout.run()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /setup: Node\.js >= 22\.19 \(not 23\) is needed \(found v20\.11\.0\).*could not be fetched/,
      ),
    })
    checkout.program('npm-brings', brokenNode, checkout.folder)
    expect(checkout.run()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('does not run on this machine'),
    })
  })
})

describe('the Redis server', () => {
  it.each(['redis-server', 'valkey-server'])('may be %s', (name) => {
    const checkout = new Checkout()
    checkout.remove(join(checkout.bin, 'redis-server'))
    checkout.program(name)
    expect(checkout.run()).toMatchObject({ status: 0 })
  })

  it('may be named by REDIS_SERVER_BIN, and then must be a program', () => {
    const checkout = new Checkout()
    checkout.remove(join(checkout.bin, 'redis-server'))
    const path = checkout.program('my-redis', goodRedis, checkout.folder)
    expect(checkout.run({ REDIS_SERVER_BIN: path })).toMatchObject({ status: 0 })
    const other = checkout.program('no-redis', '#!/bin/sh\necho cat 9.1\n', checkout.folder)
    const endless = checkout.program('endless', '#!/bin/sh\nexec sleep 3600\n')
    for (const REDIS_SERVER_BIN of [other, found('cmp'), checkout.program('silent'), endless])
      expect(checkout.run({ REDIS_SERVER_BIN })).toMatchObject({
        status: 1,
        stderr: `setup: REDIS_SERVER_BIN names ${REDIS_SERVER_BIN}, which does not answer --version as redis-server does.\n`,
      })
    for (const REDIS_SERVER_BIN of ['/nowhere/redis', checkout.folder])
      expect(checkout.run({ REDIS_SERVER_BIN })).toMatchObject({
        status: 1,
        stderr: `setup: REDIS_SERVER_BIN names ${REDIS_SERVER_BIN}, which is no program that can be run.\n`,
      })
  })

  it('that cannot be had is one sentence', () => {
    const checkout = new Checkout()
    checkout.remove(join(checkout.bin, 'redis-server'))
    expect(checkout.run()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('could not be installed'),
    })
  })
})

it('a Debian package that two test files want at once is fetched once, and seen by none before it is whole', async () => {
  const folder = testFolder()
  const log = join(folder, 'asked')
  const slow = {
    'apt-get': `echo "$*" >>'${log}'; : >package.deb`,
    // As dpkg-deb does, it writes a program that can be seen and not yet be run.
    'dpkg-deb': `mkdir -p "$3/usr/bin"; exec 3>"$3/usr/bin/tool"; chmod 755 "$3/usr/bin/tool"
      sleep 0.5; printf '#!/bin/sh\\necho whole\\n' >&3`,
  }
  for (const [name, text] of Object.entries(slow))
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const wants = `
    import { unpacked } from '${join(root, 'test/support/debian.ts')}'
    import { execFileSync } from 'node:child_process'
    const there = unpacked('some-package', '${join(folder, 'cache/tools')}')
    process.stdout.write(execFileSync(there + '/usr/bin/tool'))`
  const file = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', wants], { env })
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH']}` }
  const said = await Promise.all([file(), file()])
  expect(said.map(({ stdout }) => stdout)).toEqual(['whole\n', 'whole\n'])
  expect(readFileSync(log, 'utf8')).toBe('download some-package\n')
})

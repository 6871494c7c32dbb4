import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The rules of the house that a machine can check: who may import whom, how long a file may be, what is never written. */

const root = join(import.meta.dirname, '..')
const linesMax = 300

const ranks: Record<string, number> = {
  lib: 0,
  telemetry: 1,
  alert: 1,
  schedule: 1,
  walk: 2,
  feed: 3,
  sinks: 3,
  store: 3,
  config: 3,
  sandbox: 4,
  routing: 4,
  intake: 4,
  delivery: 4,
  context: 4,
  poller: 5,
  admin: 6,
  app: 7,
  cli: 8,
  'main.ts': 9,
}

/** The rooms that may name a package; a package that is missing here may be used nowhere. */
const homes: Record<string, string[]> = {
  zod: ['lib', 'alert', 'feed', 'sinks', 'store', 'schedule', 'config', 'intake', 'delivery', 'admin', 'cli'],
  ioredis: ['store'],
  bullmq: ['delivery'],
  undici: ['lib', 'feed', 'sinks', 'cli'],
  'ipaddr.js': ['sinks'],
  nodemailer: ['sinks'],
  '@resvg/resvg-js': ['sinks'],
  '@slack/webhook': ['sinks'],
  fastify: ['admin'],
  // `init` writes a config.
  yaml: ['config', 'cli'],
  liquidjs: ['sinks'],
  re2js: ['alert'],
  pino: ['telemetry'],
  'pino-pretty': ['telemetry'],
  'prom-client': ['telemetry'],
  commander: ['cli'],
  // A development dependency: the demo receives its own mails.
  'smtp-server': ['sandbox'],
}

const sources = filesUnder(join(root, 'src')).map((path) => {
  const text = readFileSync(path, 'utf8')
  return { path, name: relative(join(root, 'src'), path), text, imports: importsOf(text) }
})
const written = [...sources.map(({ name, text }) => ({ name: `src/${name}`, text })), ...testFiles()]

describe('the structure', () => {
  it('lets imports point one way only', () => {
    const wrong = sources.flatMap(({ name, imports }) =>
      imports
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => normalize(join(dirname(name), specifier)))
        .filter((target) => !mayImport(name, target))
        .map((target) => `${name} imports ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('has no import cycles', () => {
    expect(findCycles()).toEqual([])
  })

  it('gives each npm package its home', () => {
    const wrong = sources.flatMap(({ name, imports }) =>
      imports
        .filter((specifier) => !specifier.startsWith('.') && !isBuiltin(specifier))
        .filter((specifier) => !homes[packageOf(specifier)]?.includes(room(name)))
        .map((specifier) => `${name} imports ${specifier}`),
    )
    expect(wrong).toEqual([])
  })

  it('loads no package but the one that reads the command line before a command is chosen', () => {
    expect(packagesLoadedBy('cli/cli.ts')).toEqual(['commander'])
  })

  it('loads what only some configs need when a config asks for it', () => {
    expect(packagesLoadedBy('cli/run.ts')).toEqual([
      'bullmq',
      'commander',
      'fastify',
      'ioredis',
      'ipaddr.js',
      'pino',
      'prom-client',
      're2js',
      'yaml',
      'zod',
    ])
  })

  it('has a rank for every room', () => {
    const unknown = [...new Set(sources.map(({ name }) => room(name)))].filter((each) => !(each in ranks))
    expect(unknown).toEqual([])
  })

  it('keeps lib small enough to be leaf helpers', () => {
    const lines = sources
      .filter(({ name }) => room(name) === 'lib')
      .map(({ text }) => text.split('\n').length)
    expect(lines.reduce((sum, each) => sum + each, 0)).toBeLessThan(520)
  })

  it('keeps only the files at the top that belong there', () => {
    const known = [
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'src',
      'config',
      'test',
      'helm',
      'Dockerfile',
    ]
    const prose = ['README.md', 'LICENSE', 'CHANGELOG.md', 'setup.sh']
    // What a user of the checkout makes by following README, and what tools make.
    const ignored = ['node_modules', 'dist', 'data', 'bridge.yaml', 'bridge.env', 'coverage']
    // Of `npm pack` and `npm run pack:offline`.
    const archive = /^alert-bridge-.*(\.tgz|\.tar\.gz(\.sha256)?)$/
    const others = readdirSync(root).filter(
      (name) =>
        !name.startsWith('.') && !archive.test(name) && ![...known, ...prose, ...ignored].includes(name),
    )
    expect(others).toEqual([])
  })
})

describe('every file', () => {
  it(`of src has at most ${linesMax} lines`, () => {
    const long = sources.map(({ name, text }) => ({ name, lines: text.split('\n').length - 1 }))
    expect(long.filter(({ lines }) => lines > linesMax)).toEqual([])
  })

  it.each([
    ['console', /\bconsole\./, 'log through telemetry/log.ts, print through process.stdout.write'],
    ['any', /(:|as|<|\|)\s*any\b(?! )/, 'use unknown and parse it'],
    ['unfinished marks', new RegExp(['TO', 'DO|FIX', 'ME|X', 'XX'].join('')), 'finish it or leave it out'],
    ['default exports', /^export default /m, 'export by name'],
    ['enums', /^(export )?(const )?enum /m, 'use a union of strings'],
  ])('of src is free of %s', (_what, pattern, _instead) => {
    expect(sources.filter(({ text }) => pattern.test(withoutStrings(text))).map(({ name }) => name)).toEqual(
      [],
    )
  })

  it('of src exports only what another file names', () => {
    const named = new Map<string, number>()
    for (const { text } of written)
      for (const word of new Set(text.match(/\w+/g))) named.set(word, (named.get(word) ?? 0) + 1)
    const exported = /^export (?:async )?(?:function\*?|const|class|interface|type) (\w+)/gm
    const names = sources.flatMap(({ text }) => [...text.matchAll(exported)].map(([, name = '']) => name))
    expect(names.filter((name) => named.get(name) === 1)).toEqual([])
  })

  it('leaves the process to main, the commands and nobody else', () => {
    const wrong = sources.filter(({ name, text }) => /process\.exit\(/.test(text) && name !== 'main.ts')
    expect(wrong.map(({ name }) => name)).toEqual([])
  })

  it('writes to the terminal where it is kept clean of what others wrote', () => {
    // main.ts writes its own words only, before it may import what others need.
    const writers = ['cli/output/output.ts', 'cli/output/progress.ts', 'app/demo.ts', 'main.ts']
    const wrong = sources.filter(
      ({ name, text }) => /process\.std(out|err)\.write\(/.test(text) && !writers.includes(name),
    )
    expect(wrong.map(({ name }) => name)).toEqual([])
  })

  it('reads the clock through lib/clock where decisions are made', () => {
    const pure = sources.filter(({ name }) => ['schedule', 'alert', 'intake'].includes(room(name)))
    expect(pure.filter(({ text }) => /Date\.now\(\)/.test(text)).map(({ name }) => name)).toEqual([])
  })

  it('that a comment or a README names is there', () => {
    const prose = ['src', 'test', 'config', 'helm', '.github'].flatMap((folder) => readmesUnder(folder))
    const bare = new Set(written.map(({ name }) => basename(name)))
    const missing = [...written, ...prose, readme('README.md')].flatMap(({ name, text }) =>
      [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)*\.ts)`/g)].flatMap(([, path = '']) => {
        const places = ['', 'src', 'test', dirname(name)].map((folder) => join(root, folder, path))
        const isThere = path.includes('/') ? places.some((each) => existsSync(each)) : bare.has(path)
        return isThere ? [] : [`${name} names ${path}`]
      }),
    )
    expect(missing).toEqual([])
  })

  it('of the tests runs: none is skipped, focused or left for later', () => {
    const pattern = new RegExp(`\\b(it|test|describe)\\.(${['skip', 'only', 'todo', 'fails'].join('|')})\\b`)
    expect(written.filter(({ text }) => pattern.test(text)).map(({ name }) => name)).toEqual([])
  })
})

describe('the lockfile', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { optionalDependencies?: Record<string, string>; resolved?: string }>
  }

  it('has an entry for every optional platform package, so that npm ci works everywhere', () => {
    const missing = Object.entries(lock.packages).flatMap(([parent, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          !(`node_modules/${name}` in lock.packages) && !(`${parent}/node_modules/${name}` in lock.packages),
      ),
    )
    expect(missing).toEqual([])
  })

  it('names no registry', () => {
    expect(Object.values(lock.packages).filter(({ resolved }) => resolved !== undefined)).toEqual([])
  })

  it('goes with exact versions in package.json', () => {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >
    const versions = { ...manifest['dependencies'], ...manifest['devDependencies'] }
    expect(Object.entries(versions).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })
})

function mayImport(from: string, to: string): boolean {
  if (room(from) === room(to)) return true
  // A sink owns its config schema; the config is made of them.
  if (room(from) === 'config' && /^sinks\/([\w-]+\/)?[\w-]*config\.ts$/.test(to)) return true
  return (ranks[room(from)] ?? -1) > (ranks[room(to)] ?? 99)
}

function findCycles(): string[] {
  const graph = new Map(
    sources.map(({ name, imports }) => [
      name,
      imports.filter((each) => each.startsWith('.')).map((each) => normalize(join(dirname(name), each))),
    ]),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (name: string, path: string[]) => {
    if (path.includes(name)) cycles.push([...path.slice(path.indexOf(name)), name].join(' -> '))
    if (done.has(name) || path.includes(name)) return
    for (const next of graph.get(name) ?? []) visit(next, [...path, name])
    done.add(name)
  }
  for (const name of graph.keys()) visit(name, [])
  return cycles
}

/** By static imports that leave a trace in JavaScript. */
function packagesLoadedBy(name: string): string[] {
  const loaded = new Set([name])
  for (const each of loaded) {
    const text = sources.find((source) => source.name === each)?.text ?? ''
    const statics = importsOf(text.replace(/^(import|export) type\b.*/gm, '').replace(/\bimport\('/g, '('))
    for (const next of statics) loaded.add(next.startsWith('.') ? normalize(join(dirname(each), next)) : next)
  }
  const packages = [...loaded].filter((each) => !each.endsWith('.ts') && !isBuiltin(each))
  return [...new Set(packages.map(packageOf))].sort()
}

function readmesUnder(folder: string): { name: string; text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => readme(join(folder, path)))
}

function readme(name: string): { name: string; text: string } {
  return { name, text: readFileSync(join(root, name), 'utf8') }
}

function room(name: string): string {
  return name.split('/')[0] ?? name
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith('node:') || builtinModules.includes(specifier)
}

/** Specifiers of static and dynamic imports, value and type. */
function importsOf(text: string): string[] {
  const forms = [
    /^(?:import|export)\b[^'"]*?\bfrom\s+'([^'\n]+)'/gm,
    /\bimport\('([^'\n]+)'\)/g,
    /^import '([^'\n]+)'/gm,
  ]
  return forms.flatMap((form) => [...text.matchAll(form)].map((match) => match[1] ?? ''))
}

function withoutStrings(text: string): string {
  return text
    .replace(/'[^'\n]*'|`[^`]*`/g, "''")
    .replace(/\/\/.*$/gm, (comment) => comment.replace(/\bany\b/g, ''))
}

function testFiles() {
  return filesUnder(join(root, 'test'))
    .filter((path) => path !== import.meta.filename)
    .map((path) => ({ name: relative(root, path), text: readFileSync(path, 'utf8') }))
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))
}

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './helm.ts'

/**
 * The types of Kubernetes' objects, made from its own OpenAPI documents and from the custom resources of others. By them the compiler
 * finds what a server would refuse or drop: a field that there is not, one that is missing, a value of another type.
 */
const packages = {
  'kubernetes-models': '5.1.0',
  '@kubernetes-models/apimachinery': '3.0.2',
  '@kubernetes-models/base': '6.0.1',
  '@kubernetes-models/prometheus-operator': '6.0.0',
  '@kubernetes-models/keda': '2.0.0',
}

const fetchTimeoutMs = 60_000
const compileTimeoutMs = 60_000

/** Returns what is wrong with objects of these kinds, a line each. */
export function typeErrors(objects: readonly { apiVersion: string; kind: string }[]): string[] {
  const types = join(root, '.cache/kubernetes-types')
  if (!existsSync(types)) fetchTypes(types)
  const work = mkdtempSync(join(types, 'check-'))
  try {
    const lines = objects.map(
      (object, at) => `export const object${at}: ${typeOf(object)} = ${JSON.stringify(object)}\n`,
    )
    writeFileSync(join(work, 'objects.ts'), lines.join(''))
    writeFileSync(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['objects.ts'] }))
    const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['--project', work], {
      encoding: 'utf8',
      timeout: compileTimeoutMs,
    })
    if (tsc.status === 0) return []
    return `${tsc.stdout}${tsc.stderr}`.trim().split('\n')
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', types: [] }

function typeOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  const operators: Readonly<Record<string, string>> = {
    'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
    'keda.sh': '@kubernetes-models/keda',
  }
  const from = operators[apiVersion.split('/')[0] ?? ''] ?? 'kubernetes-models'
  return `import('${from}/${apiVersion}').I${kind}`
}

function fetchTypes(target: string): void {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const work = mkdtempSync(join(root, '.cache/fetch-'))
  try {
    const options = { cwd: work, timeout: fetchTimeoutMs, encoding: 'utf8' } as const
    const names = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
    const archives = execFileSync('npm', ['pack', '--silent', ...names], options)
    for (const [at, name] of Object.keys(packages).entries()) {
      const folder = join(work, 'node_modules', name)
      mkdirSync(folder, { recursive: true })
      const archive = archives.trim().split('\n')[at] ?? ''
      execFileSync('tar', ['xzf', archive, '--strip-components=1', '-C', folder], options)
      rmSync(join(work, archive))
    }
    // Renamed into place, so that nobody ever sees half of it.
    renameSync(work, target)
  } catch (cause) {
    throw new Error('The types of Kubernetes could not be fetched from the npm registry.', { cause })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

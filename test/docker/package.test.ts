import { type ExecFileSyncOptionsWithStringEncoding, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config/load.ts'
import { stopMsMaxOf } from '../../src/delivery/worker/stop-times.ts'
import type * as Drawing from '../../src/sinks/chart/drawer.ts'
import { connectRedis, waitForRedis } from '../../src/store/connection/redis.ts'
import { checkRedis } from '../../src/store/connection/redis-check.ts'
import { captureLog } from '../support/log.ts'
import { fetchPrometheus, promtool } from '../support/promtool.ts'
import { freshPrefix, startRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'

beforeAll(...fetchPrometheus)

/** The ways to install without a checkout: the npm package, compose, systemd. */
const root = join(import.meta.dirname, '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}
const config = (name: string) => join(root, 'config', name)
const read = (name: string) => readFileSync(config(name), 'utf8')

describe('the npm package', () => {
  let folder = ''
  let binary = ''
  let dist = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'package-'))
    const options: ExecFileSyncOptionsWithStringEncoding = { encoding: 'utf8' }
    const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], {
      ...options,
      cwd: root,
    })
    const app = join(folder, 'app')
    mkdirSync(app)
    const install = ['install', '--silent', '--no-audit', '--no-fund', '--prefer-offline']
    const archive = packed.trim().split('\n').at(-1) ?? ''
    execFileSync('npm', [...install, join('..', archive)], { ...options, cwd: app })
    binary = join(app, 'node_modules/.bin/alert-bridge')
    dist = join(app, 'node_modules/alert-bridge/dist')
  }, 180_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function start(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = spawn(binary, args, { cwd: folder, env: { ...process.env, ...env }, stdio: 'pipe' })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)))
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await ended
    })
    return { child, ended, output: () => output }
  }

  it('has no secrets in it, nor has the archive for machines without a registry, and git takes none', () => {
    const copy = join(folder, 'copy')
    mkdirSync(copy)
    for (const name of ['package.json', 'config'])
      cpSync(join(root, name), join(copy, name), { recursive: true })
    // Where compose.yaml and `init` have people put them.
    for (const name of ['.env', 'bridge.env', 'compose/.env.local'])
      writeFileSync(join(copy, 'config', name), 'MARKET_DATA_TOKEN=canary\n')
    const run = (command: string, ...args: string[]) =>
      execFileSync(command, args, { cwd: copy, encoding: 'utf8', stdio: 'pipe' })
    const [{ files = [] } = {}] = JSON.parse(
      run('npm', 'pack', '--dry-run', '--json', '--ignore-scripts'),
    ) as { files?: { path: string }[] }[]
    const packed = files.map(({ path }) => path)
    expect(packed).toContain('config/compose.yaml')
    expect(packed.filter((path) => path.includes('env'))).toEqual([])
    expect(readFileSync(join(root, '.gitignore'), 'utf8').split('\n')).toEqual(
      expect.arrayContaining(['.env*', '*.env']),
    )
    // The archive takes its files from the package, and can be read by whoever it is unpacked for.
    expect(read('offline/pack.sh')).toMatch(/npm pack [\s\S]* --mode=u\+rwX,go\+rX,go-w /)
  })

  it('knows its version and its commands', async () => {
    const [version, help] = [start(['--version']), start(['run', '--help'])]
    expect([await version.ended, version.output().trim()]).toEqual([0, manifest.version])
    expect([await help.ended, help.output()]).toEqual([0, expect.stringContaining('--config')])
  })

  it('draws charts', async () => {
    const { createDrawer } = (await import(join(dist, 'sinks/chart/drawer.js'))) as typeof Drawing
    const drawer = createDrawer({ waitMsMax: 20_000 })
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text y="15">۵</text></svg>'
    const png = await drawer.draw(svg, 20_000)
    await drawer.close()
    expect(Buffer.from(png ?? []).toString('latin1')).toMatch(/^.PNG/)
  })

  it('imports nothing at its start that it does not name', () => {
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' })
    const missing = files
      .filter((file) => file.endsWith('.js'))
      .flatMap((file) => packagesOf(readFileSync(join(dist, file), 'utf8')).map((name) => `${file}: ${name}`))
      .filter((line) => !Object.hasOwn(manifest.dependencies, line.split(': ')[1] ?? ''))
    expect(missing).toEqual([])
  })

  it('runs the demo, all of it, from an empty folder', async () => {
    const { ended, output } = start(['demo', '--seconds', '3'])
    expect([await ended, output()]).toEqual([0, expect.stringContaining('webhook')])
  }, 60_000)

  it('runs the bridge, which drains and ends on SIGTERM', async () => {
    const sandbox = await startSandbox()
    const file = join(folder, 'config.yaml')
    writeFileSync(file, `${read('minimal.yaml')}\nhttp: { listen: "127.0.0.1:0" }\n`)
    const { child, ended, output } = start(['run', '--config', file], {
      MARKET_DATA_URL: sandbox.url,
      MARKET_DATA_TOKEN: 'sandbox-token',
      WEBHOOK_URL: 'https://hooks.example.com/',
    })
    await until(`it has polled: ${output()}`, () => sandbox.requests.length > 0, 30_000)
    child.kill('SIGTERM')
    expect([await ended, output()]).toEqual([0, expect.stringContaining('"stopped"')])
  }, 60_000)
})

describe('compose.yaml', () => {
  const compose = parse(read('compose.yaml')) as {
    services: Readonly<Record<string, Service>>
    volumes: Readonly<Record<string, unknown>>
  }

  it('names only files and volumes that there are', () => {
    const sources = Object.values(compose.services).flatMap(({ volumes = [] }) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    )
    const missing = sources.filter((source) =>
      source.startsWith('.') ? !existsSync(config(source)) : !Object.hasOwn(compose.volumes, source),
    )
    expect(missing).toEqual([])
    expect(existsSync(config('../Dockerfile'))).toBe(true)
  })

  it('gives the bridge a config that is right, and every variable of it', () => {
    const env = Object.fromEntries(
      Object.keys(compose.services['bridge']?.environment ?? {}).map((name) => [
        name,
        'https://example.com/x',
      ]),
    )
    const loaded = parseConfig(read('compose/bridge.yaml'), { env, folder: '/' })
    expect(loaded).toMatchObject({ ok: true })
  })

  it('gives Prometheus a config and rules that it takes, and a name that the bridge answers to', () => {
    const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    for (const [from, to] of [
      ['compose/prometheus.yml', 'prometheus.yml'],
      ['monitoring/rules.yaml', 'rules.yaml'],
    ] as const)
      writeFileSync(join(folder, to), read(from))
    expect(promtool(['check', 'config', join(folder, 'prometheus.yml')])).toContain('SUCCESS')
    expect(read('compose/prometheus.yml')).toContain('targets: ["bridge:8080"]')
    expect(parse(read('compose/bridge.yaml'))).toMatchObject({ http: { hosts: ['bridge'] } })
    const { providers } = parse(read('compose/grafana-dashboards.yaml')) as {
      providers: { options: { path: string } }[]
    }
    const mounts = compose.services['grafana']?.volumes?.join() ?? ''
    for (const { options } of providers) expect(mounts).toContain(options.path)
  })

  it('puts each file where the program of its image looks for it, and names services that there are', () => {
    const mounted = Object.entries(compose.services).flatMap(([service, { volumes = [] }]) =>
      volumes
        .filter((volume) => volume.startsWith('.'))
        .map((volume) => [service, ...volume.split(':')].join(' ')),
    )
    const grafana = 'grafana ./compose/grafana-'
    expect(mounted).toEqual([
      // As the Dockerfile has it in CMD.
      'bridge ./compose/bridge.yaml /etc/alert-bridge/config.yaml ro',
      'prometheus ./compose/prometheus.yml /etc/prometheus/prometheus.yml ro',
      'prometheus ./monitoring/rules.yaml /etc/prometheus/rules.yaml ro',
      `${grafana}datasource.yaml /etc/grafana/provisioning/datasources/prometheus.yaml ro`,
      `${grafana}dashboards.yaml /etc/grafana/provisioning/dashboards/alert-bridge.yaml ro`,
      'grafana ./monitoring/dashboard.json /var/lib/grafana/dashboards/alert-bridge.json ro',
    ])
    expect(readFileSync(join(root, 'Dockerfile'), 'utf8')).toContain(
      '"--config", "/etc/alert-bridge/config.yaml"',
    )
    expect(parse(read('compose/prometheus.yml'))).toMatchObject({ rule_files: ['rules.yaml'] })
    const { datasources } = parse(read('compose/grafana-datasource.yaml')) as {
      datasources: { url: string }[]
    }
    const { redis } = parse(read('compose/bridge.yaml')) as { redis: { url: string } }
    expect([redis.url, ...datasources.map(({ url }) => url)]).toEqual([
      'redis://redis:6379',
      'http://prometheus:9090',
    ])
    expect(Object.keys(compose.services)).toEqual(expect.arrayContaining(['redis', 'prometheus']))
  })

  it('starts a Redis of which the bridge has nothing to say, and gives sends the time to end', async () => {
    const [program, ...flags] = compose.services['redis']?.command ?? []
    expect(program).toBe('redis-server')
    const server = await startRedis({ flags })
    onTestFinished(() => server.dispose())
    const { log } = captureLog()
    const client = connectRedis({ target: { url: server.url }, profile: 'commands' }, log)
    onTestFinished(() => client.disconnect())
    await waitForRedis(client, { log, signal: new AbortController().signal })
    expect(await checkRedis(client, { prefix: freshPrefix() })).toEqual([])
    const [, seconds] = /^(\d+)s$/.exec(compose.services['bridge']?.stop_grace_period ?? '') ?? []
    expect(Number(seconds) * 1_000).toBeGreaterThan(stopMsMaxOf({ timeoutMs: 10_000 }) + 10_000)
  })
})

it('the systemd unit starts, reloads and stops the bridge as it is meant to', () => {
  const unit = read('systemd/alert-bridge.service')
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
  expect(value('ExecStart')).toMatch(
    / --disable-sigusr1 --max-semi-space-size=16 --max-old-space-size=\d+ \S+\/dist\/main\.js run --config \S+$/,
  )
  expect(value('ExecReload')).toContain('-HUP')
  // The signal to an embedded redis-server would come before the bridge has stored what it sent.
  expect(value('KillMode')).toBe('mixed')
  expect(value('TimeoutStopSec')).toBe('330s')
})

it('the systemd unit lets the bridge open connections, read its config and write its state, and nothing else', () => {
  const lines = read('systemd/alert-bridge.service').split('\n')
  const on = ['NoNewPrivileges', 'ProtectHome', 'PrivateTmp', 'PrivateDevices', 'PrivateUsers', 'DynamicUser']
  const protects = ['Clock', 'ControlGroups', 'Hostname', 'KernelLogs', 'KernelModules', 'KernelTunables']
  const restricts = ['Namespaces', 'Realtime', 'SUIDSGID']
  expect(lines).toEqual(
    expect.arrayContaining([
      ...on.map((name) => `${name}=yes`),
      ...protects.map((name) => `Protect${name}=yes`),
      ...restricts.map((name) => `Restrict${name}=yes`),
      ...['ProtectSystem=strict', 'ProtectProc=invisible', 'LockPersonality=yes', 'RemoveIPC=yes'],
      ...['CapabilityBoundingSet=', 'AmbientCapabilities=', 'StateDirectory=alert-bridge', 'UMask=0077'],
      ...['RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX', 'SystemCallArchitectures=native'],
      ...['SystemCallFilter=@system-service', 'SystemCallFilter=~@privileged'],
    ]),
  )
})

/** What the tests look into of a service of compose.yaml. */
interface Service {
  readonly volumes?: string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly command?: readonly string[]
  readonly stop_grace_period?: string
}

/** The npm packages that a compiled module imports statically. */
function packagesOf(code: string): string[] {
  const specifiers = [...code.matchAll(/^(?:import|export)\s[^'";]*?from '([^'.][^']*)'/gm)].map(
    ([, name]) => name ?? '',
  )
  return specifiers
    .filter((name) => !name.startsWith('node:'))
    .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'))
}

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type * as z from 'zod'
import { type ContextName, contextKinds, contextUnits } from '../src/alert/context.ts'
import { parseConfig } from '../src/config/load.ts'
import { coreOf, metaOf, type Schema } from '../src/config/outline.ts'
import { configSchema } from '../src/config/schema.ts'
import { callsOf } from '../src/context/calls.ts'
import { durationText } from '../src/lib/duration.ts'
import { waits } from '../src/lib/waits.ts'
import { digestMax } from '../src/sinks/email/message.ts'
import { listMax } from '../src/sinks/slack/blocks.ts'
import { createMetrics } from '../src/telemetry/metrics.ts'
import { chart, findHelm, helm } from './helm/helm.ts'
import { startProgram, testFolder, writeConfig } from './support/process.ts'

/** README says what is so: its tables are held against the code, its configs are loaded, its files exist. */

type ZodTypes = z.core.$ZodTypes

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const reference = readFileSync(join(root, 'config/README.md'), 'utf8')
const chartReadme = readFileSync(join(root, 'helm/alert-bridge/README.md'), 'utf8')
const blocks = [...readme.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language, text = '']) => ({
  language,
  text,
}))
const chartValues = /```yaml\n([\s\S]*?)```/.exec(chartReadme)?.[1] ?? ''
const configs = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
const env = {
  MARKET_DATA_URL: 'https://api.example.com',
  MARKET_DATA_TOKEN: 'token',
  WEBHOOK_URL: 'https://hooks.example.com/alerts',
  WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  SLACK_WEBHOOK_URL: 'https://hooks.slack.com/services/T0/B0/x',
  SMTP_URL: 'smtp://user:password@mail.example.com:587',
}

describe('README', () => {
  it('lists every metric with its kind, its labels and its help', async () => {
    const { registry } = createMetrics({ version: '1', node: 'v24' })
    const own = (await registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith('alert_bridge_'))
    const rows = own.map(({ name, type, help }) => {
      const labels = labelsOf(registry.getSingleMetric(name)).map((label) => `\`${label}\``)
      return `| \`${name.replace('alert_bridge_', '')}\` | ${type} | ${labels.join(', ')} | ${help} |`
    })
    const table = reference.split('\n').filter((line) => /^\| `\w+` \| (gauge|counter|histogram) /.test(line))
    expect(table).toEqual(rows)
  })

  it('lists the longest of every wait that somebody can name', () => {
    const rows = Object.values(waits).map(({ namedBy, what, maxMs }) => [namedBy, what, maxMs] as const)
    const config = durationsOf(configSchema).map(
      ([path, maxMs]) => ['the config', `\`${path}\``, maxMs] as const,
    )
    expect(config.filter(([, , maxMs]) => maxMs === undefined)).toEqual([])
    const wanted = [...rows, ...config].map(
      ([who, what, ms = 0]) => `| ${who} | ${what} | ${durationText(ms)} |`,
    )
    const [, section = ''] = reference.split('## Who can make it wait, and for how long')
    const table = (section.split('## HTTP')[0] ?? '')
      .split('\n')
      .filter((line) => /^\| (?!Named|-)/.test(line))
    expect(table).toEqual(wanted)
  })

  it('lists what each name of context costs, and which scope it asks for', () => {
    const names: readonly ContextName[] = [...contextKinds, 'macro:KEY']
    for (const name of names) {
      const { scope } = callsOf(name).single
      expect(reference).toContain(`\n| \`${name}\` | ${contextUnits(name)} | \`${scope}\` |`)
    }
  })

  it('lists every command that there is, and no other', async () => {
    const program = startProgram(['--help'])
    expect(await program.ended()).toBe(0)
    const there = [...program.stdout().matchAll(/^ {2}([a-z][a-z-]+)(?= )/gm)].map(([, name]) => name)
    const commands = readme.slice(readme.indexOf('## Commands'), readme.indexOf('## Config'))
    const listed = [...commands.matchAll(/^\| (.*?) \| /gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([a-z][a-z-]+)/g)].map(([, name]) => name),
    )
    expect([...new Set(listed)].sort()).toEqual(there.filter((name) => name !== 'help').sort())
  })

  it('lists every path of the HTTP server, and no other', () => {
    const folder = join(root, 'src/admin')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const source = files
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('\n')
    const there = [...source.matchAll(/['`](\/(?:api\/v1|alerts|-|metrics|healthz|readyz)[^'`\s]*|\/)['`]/g)]
      .map(([, path = '']) => path)
      .flatMap((path) => ['pause', 'resume'].map((verb) => path.replace(/\$\{verb\}/, verb)))
      .filter((path) => !path.includes('$'))
      .map((path) => path.replace(/:\w+/g, ':'))
    const section = reference.slice(reference.indexOf('## HTTP'), reference.indexOf('## Metrics'))
    const listed = [...section.matchAll(/`(?:GET|POST|DELETE) (\S+)`/g)].map(([, path = '']) =>
      path.replace(/\b[A-Z]+\b/g, ':'),
    )
    expect([...new Set(listed)].sort()).toEqual([...new Set(there)].sort())
  })

  it('shows a config that is right', () => {
    const loaded = parseConfig(configs[0] ?? '', { env, folder: root })
    expect(loaded).toMatchObject({ ok: true, warnings: [] })
    const withRoutes = `${(configs[0] ?? '').split(/^routes:/m)[0]}\n${configs[1]}`
    expect(parseConfig(withRoutes, { env, folder: root })).toMatchObject({ ok: true })
  })

  it('shows chart values that render to a config that is right', () => {
    const values = writeConfig(chartValues, testFolder())
    const rendered = helm(findHelm(), ['template', 'x', chart, '--values', values])
    expect(rendered.stderr).toBe('')
    const map = rendered.stdout.split(/^---$/m).find((each) => /kind: ConfigMap/.test(each)) ?? ''
    const text = (parse(map) as { data: Record<string, string> }).data['config.yaml'] ?? ''
    const withFiles = text.replace(/(\w+File): (.*)$/gm, (_, key: string, path: string) => {
      return `${key}: ${writeConfig(secretFor(path), testFolder())}`
    })
    expect(parseConfig(withFiles, { env: {}, folder: root })).toMatchObject({ ok: true })
  })

  it('shows a way into Kubernetes that pulls the image which it builds and pushes', () => {
    const lines = /```sh\n([\s\S]*?)```/.exec(chartReadme)?.[1] ?? ''
    const folder = testFolder()
    const values = writeConfig(chartValues, folder)
    // As typed: what is no tool of this machine writes down what it was called with, and helm draws what it would install.
    for (const tool of ['docker', 'kubectl'])
      writeFileSync(join(folder, tool), `#!/bin/sh\necho ${tool} "$@"\n`, { mode: 0o755 })
    const typed = lines.replace('helm install', `"${findHelm()}" template`).replace('values.yaml', values)
    const { stdout, stderr } = spawnSync('sh', ['-ec', typed], {
      cwd: root,
      encoding: 'utf8',
      env: { PATH: `${folder}:${process.env['PATH']}` },
    })
    expect(stderr).toBe('')
    const pulled = /^ +image: "?([^"\s]+)/m.exec(stdout)?.[1] ?? ''
    expect(pulled).toMatch(/^registry\..*\/alert-bridge:/)
    expect(stdout).toContain(`docker build -t ${pulled} .\n`)
    expect(stdout).toContain(`docker push ${pulled}\n`)
    const made = [...stdout.matchAll(/^kubectl create secret generic (\S+)/gm)].map(([, name]) => name)
    const mounted = [...stdout.matchAll(/secretName: (\S+)/g)].map(([, name]) => name)
    expect(mounted.sort()).toEqual(made.sort())
  })

  it('has the small print, as have the example and the schema of the config, where the key is that it is about', () => {
    const example = readFileSync(join(root, 'config/example.yaml'), 'utf8')
    const schema = readFileSync(join(root, 'config/alert-bridge.schema.json'), 'utf8')
    for (const text of [readme, example, schema]) {
      expect(text).toContain(`${digestMax} alerts a mail`)
      expect(text).toContain(`${listMax} alerts a message`)
      expect(text).toMatch(/`?Retry-After`?[^.|]* up to 1 ?h/)
    }
    for (const text of [readme, example]) expect(text).toMatch(/does not show its\s+(# +)?policy/)
    expect(readme).toMatch(/read at every use \(those of Redis at the start\)/)
    expect(example).toMatch(/read at every use[^.]*\(Redis' are read once, at the start\)/)
  })

  it('has variables exported that no test sees, when the tests are run in the same shell', () => {
    const init = spawnSync(process.execPath, ['src/main.ts', 'init', '--help'], {
      cwd: root,
      encoding: 'utf8',
    }).stdout
    const names = [...`${readme}${init}`.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)].map(([name]) => name)
    expect(names).toEqual(expect.arrayContaining(['ADMIN_TOKEN', 'ALERT_BRIDGE_URL', 'TELEGRAM_BOT_TOKEN']))
    const print = "await import('./test/vitest.config.ts'); console.log(Object.keys(process.env).join())"
    const exported = Object.fromEntries(names.map((name) => [name, 'of-a-bridge-of-my-own']))
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', print], {
      ...{ cwd: root, encoding: 'utf8', env: { ...process.env, ...exported }, timeout: 15_000 },
    })
    expect(stdout, stderr).toContain('PATH')
    expect(
      stdout
        .trim()
        .split(',')
        .filter((name) => names.includes(name)),
    ).toEqual([])
  })

  it('names only scripts and files that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const named = [...readme.matchAll(/npm (?:run )?(?:-s )?([a-z][\w:-]*)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !(name in scripts))).toEqual([])
    const pages = [
      'README.md',
      'config/README.md',
      'src/README.md',
      'src/schedule/README.md',
      'test/faults/README.md',
      'test/bench/README.md',
      'helm/alert-bridge/README.md',
    ]
    const links = [...pages, '.github/CONTRIBUTING.md'].flatMap((page) => {
      const text = readFileSync(join(root, page), 'utf8')
      return [...text.matchAll(/\]\(([^)#:]+)\)/g)].map(([, file = '']) => join(page, '..', file))
    })
    expect(links.length).toBeGreaterThan(10)
    expect(links.filter((file) => !existsSync(join(root, file)))).toEqual([])
  })
})

/** Every duration of the config by its path, with the longest that it may be. */
function durationsOf(schema: Schema, path = '', found = new Map<string, number | undefined>()) {
  const { fieldKind, maxMs } = metaOf(schema)
  const { def } = (coreOf(schema) as ZodTypes)._zod
  if (fieldKind === 'duration') found.set(path, maxMs)
  else if (def.type === 'object')
    for (const [key, inner] of Object.entries(def.shape))
      durationsOf(inner, path ? `${path}.${key}` : key, found)
  else if (def.type === 'record') durationsOf(def.valueType, `${path}.NAME`, found)
  else if (def.type === 'array') durationsOf(def.element, `${path}[]`, found)
  else if (def.type === 'union') for (const option of def.options) durationsOf(option, path, found)
  return [...found]
}

function labelsOf(metric: unknown): readonly string[] {
  return (metric as { labelNames: readonly string[] }).labelNames
}

function secretFor(path: string): string {
  if (path.includes('redis')) return 'redis://:password@redis:6379'
  return path.includes('slack') ? env.SLACK_WEBHOOK_URL : 'token'
}

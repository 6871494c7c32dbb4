import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unpacked } from './debian.ts'
import { onTestFinished } from './finished.ts'
import { freePort } from './ports.ts'
import { testFolder } from './process.ts'
import { until } from './until.ts'

const cache = join(import.meta.dirname, '../../.cache/prometheus')

/** For `beforeAll`, before the first use of a file: no test has the time to wait for a package. */
export const fetchPrometheus = [() => void binary('promtool'), 240_000] as const

/** Runs promtool: the one on PATH, or the one in Debian's package, which is fetched once and only unpacked. */
export function promtool(args: readonly string[], input?: string): string {
  return execFileSync(binary('promtool'), args, {
    encoding: 'utf8',
    // It ends within seconds, a seventh of which is collecting garbage otherwise.
    env: { ...process.env, GOGC: '400' },
    ...(input === undefined ? {} : { input }),
  })
}

export interface Prometheus {
  /** What an expression yields now. */
  query(expression: string): Promise<readonly unknown[]>
  /** The exemplars of the last minute. */
  exemplars(
    expression: string,
  ): Promise<readonly { readonly exemplars: readonly { readonly labels: object }[] }[]>
  /** What the rules yield: recording and alerting ones, by name. */
  rules(): Promise<readonly { readonly name: string; readonly health: string; readonly state?: string }[]>
}

/** A Prometheus that scrapes these addresses each half second, stopped when the test ends. */
export async function startPrometheus(targets: readonly string[], ruleFile: string): Promise<Prometheus> {
  const folder = testFolder()
  const port = await freePort()
  const config = join(folder, 'prometheus.yml')
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
      rule_files: [ruleFile],
      scrape_configs: [{ job_name: 'alert-bridge', static_configs: [{ targets }] }],
    }),
  )
  const child = spawn(
    binary('prometheus'),
    [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, '--log.level=error'],
      '--enable-feature=exemplar-storage',
    ],
    { stdio: 'ignore' },
  )
  const ended = new Promise((resolve) => child.once('close', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    const body = (await answer.json()) as { status: string; error?: string; data: unknown }
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}`)
    return body.data
  }
  await until('Prometheus answers', () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    async query(expression) {
      const query = new URLSearchParams({ query: expression })
      return ((await ask(`/api/v1/query?${query}`)) as { result: unknown[] }).result
    },
    async exemplars(query) {
      const now = Date.now() / 1_000
      const span = new URLSearchParams({ query, start: String(now - 60), end: String(now + 60) })
      return (await ask(`/api/v1/query_exemplars?${span}`)) as { exemplars: { labels: object }[] }[]
    },
    async rules() {
      const { groups } = (await ask('/api/v1/rules')) as {
        groups: { rules: { name: string; health: string }[] }[]
      }
      return groups.flatMap(({ rules }) => rules)
    },
  }
}

function binary(name: 'promtool' | 'prometheus'): string {
  if (spawnSync(name, ['--version']).error === undefined) return name
  try {
    return join(unpacked('prometheus', cache), 'usr/bin', name)
  } catch (cause) {
    throw new Error(`${name} is not on PATH and could not be had from apt: install prometheus`, { cause })
  }
}

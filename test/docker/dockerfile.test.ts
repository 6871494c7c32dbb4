import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parseDockerfile } from './dockerfile.ts'

const root = new URL('../..', import.meta.url).pathname
const text = readFileSync(join(root, 'Dockerfile'), 'utf8')
const instructions = parseDockerfile(text)
const of = (word: string, stage?: string) =>
  instructions.filter((each) => each.word === word && (stage === undefined || each.stage === stage))
const last = (word: string) => of(word, 'runtime').at(-1)?.rest ?? ''
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
const execute = promisify(execFile)

describe('the Dockerfile', () => {
  test('builds in stages from one Node.js 24 slim base, and ends with the one that runs', () => {
    const [first, ...others] = of('FROM').map(({ rest }) => rest)
    expect(first).toBe('node:24-slim AS base')
    for (const from of others) expect(from).toMatch(/^base AS /)
    expect(instructions.at(-1)?.stage).toBe('runtime')
  })

  test('installs by the lockfile, without install scripts, under a cache', () => {
    const installs = of('RUN').filter(({ rest }) => rest.includes('npm'))
    expect(installs.map(({ stage }) => stage)).toEqual(['build', 'dependencies'])
    for (const { rest } of installs) {
      expect(rest).toMatch(/^--mount=type=cache,target=\/root\/\.npm npm ci .*--ignore-scripts/)
    }
  })

  test('ships production dependencies and compiled code only', () => {
    expect(
      of('RUN', 'dependencies')
        .map(({ rest }) => rest)
        .join(),
    ).toMatch(/--omit=dev .*find node_modules .*-name '\*\.map' .*-delete/)
    const copied = of('COPY', 'runtime').map(({ rest }) => rest)
    expect(copied).toEqual([
      'package.json LICENSE ./',
      '--from=dependencies /app/node_modules node_modules',
      '--from=build /app/dist dist',
    ])
  })

  test('copies what changes seldom before what changes often', () => {
    const steps = instructions
      .filter(({ stage }) => stage === 'build')
      .map(({ word, rest }) => `${word} ${rest}`)
    const install = steps.findIndex((step) => step.includes('npm ci'))
    expect(steps.findIndex((step) => step.startsWith('COPY package.json'))).toBeLessThan(install)
    expect(steps.indexOf('COPY src src')).toBeGreaterThan(install)
  })

  test('runs as node, never as root', () => {
    expect(last('USER')).toBe('node')
    const order = instructions.filter(({ stage }) => stage === 'runtime').map(({ word }) => word)
    expect(order.lastIndexOf('RUN')).toBeLessThan(order.indexOf('USER'))
    expect(order.lastIndexOf('COPY')).toBeLessThan(order.indexOf('USER'))
  })

  test('starts Node.js itself, so that it gets the signals', () => {
    expect(JSON.parse(last('ENTRYPOINT'))).toEqual([
      ...['node', '--disable-sigusr1', '--max-semi-space-size=16', '--max-old-space-size-percentage=75'],
      '/app/dist/main.js',
    ])
    expect(JSON.parse(last('CMD'))).toEqual(['run', '--config', '/etc/alert-bridge/config.yaml'])
  })

  test('carries the OCI labels, and no tool that only a health check needs', () => {
    for (const name of ['title', 'description', 'licenses', 'version', 'revision'])
      expect(last('LABEL')).toContain(`org.opencontainers.image.${name}=`)
    expect(
      of('RUN')
        .map(({ rest }) => rest)
        .join(),
    ).not.toMatch(/\b(curl|wget|apt-get)\b/)
  })

  test('holds no secret and downloads nothing by address', () => {
    expect(of('ADD')).toEqual([])
    for (const word of ['ARG', 'ENV'])
      expect(
        of(word)
          .map(({ rest }) => rest)
          .join(),
      ).not.toMatch(/token|secret|password|_key/i)
  })
})

describe('the health check', () => {
  const [, command = ''] = /CMD (\[.*\])$/.exec(last('HEALTHCHECK')) ?? []
  const check = async (url: string) => {
    const [, ...args] = JSON.parse(command) as string[]
    const run = execute(process.execPath, args, { env: { ...process.env, HEALTH_URL: url }, timeout: 10_000 })
    return run.then(
      () => 0,
      (error: { code: number }) => error.code,
    )
  }

  test('asks the default port unless told otherwise', () => {
    expect(command).toContain("process.env.HEALTH_URL ?? 'http://127.0.0.1:8080/healthz'")
  })

  test('succeeds on 200, and fails on 503 and when nothing listens', async () => {
    const server = createServer((request, response) =>
      response.writeHead(request.url === '/healthz' ? 200 : 503).end(),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await check(`${base}/healthz`)).toBe(0)
    expect(await check(`${base}/ill`)).toBe(1)
    server.close()
    await once(server, 'close')
    expect(await check(`${base}/healthz`)).toBe(1)
  })
})

describe('the build context', () => {
  const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))

  test('lets in nothing but what the Dockerfile copies', () => {
    expect(rules[0]).toBe('*')
    const letIn = rules.slice(1).map((rule) => rule.replace(/^!/, ''))
    const copied = of('COPY')
      .filter(({ rest }) => !rest.startsWith('--from'))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1))
    expect(new Set(letIn)).toEqual(new Set(copied))
    for (const path of letIn) expect(existsSync(join(root, path)), path).toBe(true)
  })
})

test('the build is that of the package, with the font that the compiler does not copy', () => {
  const font = 'sinks/chart/font'
  for (const command of [of('RUN', 'build').at(-1)?.rest, scripts['build']])
    expect(command).toContain(`tsc -p src --singleThreaded --noCheck && cp -R src/${font} dist/sinks/chart/`)
})

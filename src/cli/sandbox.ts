import type { Command } from 'commander'
import { untilSignal } from '../app/signal.ts'
import { given } from '../lib/given.ts'
import { tokenProblem } from '../lib/secret.ts'
import { type Announcement, announcements } from '../sandbox/evaluations.ts'
import { createSandbox, sandboxToken } from '../sandbox/sandbox.ts'
import { UsageError } from './arguments/usage.ts'
import { namedCommand } from './command-texts.ts'
import { print } from './output/output.ts'
import { shellWord } from './shell-word.ts'

/** `sandbox`: serves the Market Data Read API with synthetic data until it gets a signal to stop. */
export function sandboxCommand(): Command {
  return namedCommand('sandbox')
    .option('--port <n>', 'port of the API; 0 takes a free one', '4010')
    .option('--rate <n/unit>', 'alerts that fire: 30/m, 2/s or 5/h; 0/m is none', '30/m')
    .option(
      '--evaluations <how>',
      `rules are evaluated at instants announced so: ${announcements.join(', ')}`,
    )
    .option('--history <n>', 'alerts that are there at the start', '250')
    .option('--units-per-day <n>', 'daily budget; calls beyond it are refused until midnight in Tehran')
    .option('--token <token>', 'the token that it takes', sandboxToken)
    .option('--control-port <n>', 'opens the port where faults and tokens are declared; 0 takes a free one')
    .option('--seed <n>', 'the same seed gives the same alerts', '1')
    .option('--json', 'prints the addresses as JSON')
    .action(run)
}

/** Parses `30/m`, `2/s` or `5/h` to alerts a minute. */
export function parseRate(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\/([smh])$/.exec(text.trim())
  if (!match) throw new UsageError(`--rate: "${text}" is no rate; 30/m, 2/s and 5/h are`)
  const perMinute = { s: 60, m: 1, h: 1 / 60 }[match[2] as 's' | 'm' | 'h']
  return Number(match[1]) * perMinute
}

interface Flags {
  readonly port: string
  readonly rate: string
  readonly evaluations?: string
  readonly history: string
  readonly unitsPerDay?: string
  readonly token: string
  readonly controlPort?: string
  readonly seed: string
  readonly json?: true
}

async function run(flags: Flags): Promise<void> {
  const problem = tokenProblem(flags.token)
  if (problem !== undefined) throw new UsageError(`--token: ${problem}.`)
  const sandbox = createSandbox({
    port: whole('--port', flags.port, 65_535),
    ratePerMinute: parseRate(flags.rate),
    ...(flags.evaluations === undefined ? {} : { evaluations: announcementOf(flags.evaluations) }),
    history: whole('--history', flags.history, 1_000_000),
    tokens: [{ value: flags.token }],
    seed: whole('--seed', flags.seed, 2 ** 32 - 1),
    ...(flags.unitsPerDay === undefined
      ? {}
      : { unitsPerDay: whole('--units-per-day', flags.unitsPerDay, 1e9) }),
    ...(flags.controlPort === undefined
      ? {}
      : { controlPort: whole('--control-port', flags.controlPort, 65_535) }),
  })
  const stopped = untilSignal(['SIGINT', 'SIGTERM'])
  try {
    const { url, controlUrl } = await sandbox.start()
    print(flags.json ? toJson(url, controlUrl, flags) : describe(url, controlUrl, flags))
    await stopped
  } finally {
    await sandbox.stop()
  }
}

function announcementOf(text: string): Announcement {
  const found = announcements.find((each) => each === text)
  if (found !== undefined) return found
  throw new UsageError(`--evaluations: "${text}" is none of ${announcements.join(', ')}`)
}

function whole(option: string, text: string, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value <= max) return value
  throw new UsageError(`${option}: "${text}" is no whole number from 0 to ${max}`)
}

function toJson(url: string, controlUrl: string | undefined, { token }: Flags): string {
  return JSON.stringify({ baseUrl: url, token, ...given({ controlUrl }) })
}

function describe(url: string, controlUrl: string | undefined, { token, rate, history }: Flags): string {
  const header = shellWord(`Authorization: Bearer ${token}`)
  return [
    `The sandbox serves the Market Data Read API: ${history} alerts so far, ${rate} more to come.`,
    '',
    `  baseUrl: ${url}`,
    `  token:   ${token}`,
    ...(controlUrl ? [`  control: ${controlUrl} (GET / shows how to fire alerts and declare faults)`] : []),
    '',
    `  export MARKET_DATA_URL=${url} MARKET_DATA_TOKEN=${shellWord(token)}`,
    `  curl -H ${header} ${url}/api/v1/alerts/deliveries`,
    '',
    'Ctrl-C stops it. Ids begin at 1 at each start: a bridge that knows alerts of an earlier sandbox takes those of the same',
    'ids for known ones, and sends nothing until they go beyond; give it another dataDir (or redis.prefix).',
  ].join('\n')
}

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import { endsWithUs } from './process.ts'
import { type Ids, rowOf } from './stored.ts'
import { sinks } from './work.ts'

/**
 * Alertmanager with each alert a group of its own that waits for nothing, and a webhook for each sink. It takes alerts by its
 * API only, and sends the first while it takes the last.
 */
const program = 'prometheus-alertmanager'

/** Only unpacked, as the package comes from Debian, it does not find its templates. */
export function findAlertmanager(): void {
  if (spawnSync(program, ['--version']).error !== undefined)
    throw new Error(`${program} is not on PATH (apt-get install ${program})`)
}

const portion = 500

export function alertmanagerVersion(): string {
  const text = execFileSync(program, ['--version'], { encoding: 'utf8' })
  return `Alertmanager ${/version (\S+)/.exec(text)?.[1]}`
}

/** `folder` is its storage, which it finds again after a kill. */
export async function startAlertmanager(folder: string, url: string, receiver: string) {
  const config = join(folder, 'alertmanager.json')
  writeFileSync(
    config,
    JSON.stringify({
      global: { resolve_timeout: '24h' },
      route: { receiver: 'all', group_by: ['...'], group_wait: '0s', repeat_interval: '24h' },
      receivers: [
        {
          name: 'all',
          webhook_configs: sinks.map((sink) => ({ url: `${receiver}/${sink}`, send_resolved: false })),
        },
      ],
    }),
  )
  const child = endsWithUs(
    spawn(
      program,
      [
        ...[`--config.file=${config}`, `--storage.path=${join(folder, 'alertmanager')}`],
        ...[`--web.listen-address=${new URL(url).host}`, '--cluster.listen-address=', '--log.level=error'],
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    ),
  )
  await until('Alertmanager answers', () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return child
}

/** Each portion until it is taken, so that only what Alertmanager has said to have can be lost. */
export async function postAlerts(url: string, [from, through]: Ids): Promise<void> {
  for (let first = from; first <= through; first += portion) {
    const alerts = Array.from({ length: Math.min(portion, through + 1 - first) }, (_, index) => {
      const { id, kind, symbol, url: generatorURL, firedAt, headline, why, payload } = rowOf(first + index)
      return {
        labels: { alertname: kind, id: String(id), symbol },
        annotations: { headline, why, payload: payload.join(' ') },
        ...{ startsAt: firedAt, generatorURL },
      }
    })
    await postUntilTaken(`${url}/api/v2/alerts`, JSON.stringify(alerts))
  }
}

async function postUntilTaken(url: string, body: string): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  for (let triesLeft = 600; ; triesLeft -= 1) {
    const response = await fetch(url, { method: 'POST', headers, body }).catch(() => undefined)
    if (response?.ok) return
    if (response !== undefined) throw new Error(`Alertmanager: ${response.status} ${await response.text()}`)
    if (triesLeft === 0) throw new Error('Alertmanager takes no alerts')
    await sleep(100)
  }
}

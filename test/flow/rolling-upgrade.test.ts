import { expect, it } from 'vitest'
import { createRandom } from '../../src/sandbox/random.ts'
import { leftToSend } from '../support/bridge.ts'
import { onTestFinished } from '../support/finished.ts'
import { clean, hasAll, judge, logOf, mailLog, showing } from '../support/oracle.ts'
import { type Program, startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/**
 * Two replicas under load, replaced one after the other as Kubernetes does it, to the new version and back again.
 * `PREVIOUS=FOLDER` names a checkout of the other version with its packages (`sh test/flow/upgrade-from.sh REF` makes one);
 * without it both versions are this one, and the test is one of rolling restarts.
 */
const previous = process.env['PREVIOUS']
const versions = previous === undefined ? [undefined] : [undefined, previous]
const rounds = process.env['LONG'] === '1' ? 12 : 1
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const redis = useRedis({ aof: true })

it('replicas that are replaced one by one under load, to another version and back, lose and double nothing', {
  timeout: 60_000 + rounds * 60_000,
}, async () => {
  const random = createRandom(seed)
  const prefix = freshPrefix()
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000, unitsPerDay: 1_000_000 })
  const [hook, slack, smtp] = [
    await startWebhookReceiver(),
    await startSlackReceiver(),
    await startSmtpReceiver(),
  ]
  const shown = showing(sandbox)
  // What is refused is tried again by whichever version comes by.
  const refused = () => random.next() < 0.1
  const logs = [
    logOf('hook', hook, { status: 204, afterMs: 60 }, () => (refused() ? { status: 503 } : undefined)),
    logOf('ops', slack, { status: 200, body: 'ok', afterMs: 60 }, () =>
      refused() ? { status: 500 } : undefined,
    ),
    mailLog('desk', smtp, () => (refused() ? { code: 451, text: 'later' } : undefined)),
  ]
  const retry = 'retry: { attempts: 100, initialDelay: 300ms, maxDelay: 2s }'
  const folder = testFolder()
  const config = writeConfig(
    `
redis: { url: "${redis.url}", prefix: ${prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000, requestsPerMinute: 240 } } }
sinks:
  hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true, concurrency: 4, ${retry} }
  ops: { type: slack, url: "${slack.url}", allowPrivateNetworks: true, rateLimit: { max: 50, per: 1s }, ${retry} }
  desk: { type: email, smtp: "${smtp.url}", startTls: "off", from: Alerts <alerts@example.com>, to: [desk@example.com], allowPrivateNetworks: true, ${retry} }
routes: [{ sinks: [hook, ops, desk] }]
`,
    folder,
  )
  const start = async (checkout: string | undefined) => {
    const program = startProgram(['run', '--config', config], {}, undefined, checkout)
    await program.logged('started', 40_000)
    return program
  }
  const steady = setInterval(() => shown.fire(random.int(3)), 200)
  onTestFinished(() => clearInterval(steady))
  let replicas: Program[] = [await start(previous), await start(previous)]
  const taken = () => Math.min(...logs.map((log) => log.taken.length))
  for (let round = 0; round < rounds; round += 1) {
    for (const to of versions) {
      for (const old of replicas) {
        // A pod is replaced once its successor is ready.
        const successor = await start(to)
        const before = taken()
        await until('they have sent side by side', () => taken() > before + 10, 20_000)
        shown.fire(random.int(60))
        old.kill('SIGTERM')
        expect(await old.ended(30_000)).toBe(0)
        replicas = [...replicas.filter((each) => each !== old), successor]
      }
    }
  }
  clearInterval(steady)
  await until('everything arrives', () => logs.every((log) => hasAll(shown, log)), 60_000)
  const sinks = logs.map(({ name }) => name)
  await until('nothing is left', async () => (await leftToSend(redis.client(), prefix, sinks)) === 0, 60_000)
  for (const each of replicas) each.kill('SIGTERM')
  for (const each of replicas) expect(await each.ended(30_000)).toBe(0)
  expect(
    logs.map((log) => judge(shown, log)),
    `seed ${seed}`,
  ).toEqual([clean, clean, clean])
  process.stdout.write(`rolling upgrade: seed ${seed}, ${shown.ids.size} alerts, each once at 3 sinks\n`)
})

import dns, { type LookupAddress } from 'node:dns'
import { request } from 'node:http'
import { expect, it, onTestFinished, vi } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { startApp } from '../support/app.ts'
import { bridgeConfig } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** The names of the config are those that the server answers to; that of a page which rebinds its own name is none. */

const redis = useRedis()

function statusUnder(url: string, host: string): Promise<number> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    request({ host: hostname, port, path: '/api/v1/status', headers: { host } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

it('a bridge answers to the names of http.hosts and http.listen, to one that a reload adds, and to no other', async () => {
  const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
  const parts = { prefix: freshPrefix(), redis, feed: sandbox.url, sinks: { hook: hook.url } }
  // A name of this machine that the test makes up: only Node.js asks for it.
  const lookup = dns.lookup as (name: string, ...rest: unknown[]) => void
  const spy = vi.spyOn(dns, 'lookup').mockImplementation(((name: string, ...rest: unknown[]) => {
    const done = rest.at(-1) as (error: null, found: LookupAddress[]) => void
    if (name === 'listens.example') done(null, [{ address: '127.0.0.1', family: 4 }])
    else lookup(name, ...rest)
  }) as never)
  onTestFinished(() => spy.mockRestore())
  const textOf = (hosts: string) =>
    bridgeConfig(parts).replace('"127.0.0.1:0"', `"listens.example:0", hosts: [${hosts}]`)
  let text = textOf('bridge.example.com')
  const load = () => parseConfig(text, { env: {}, folder: '/' })
  const { app, url } = await startApp(text, { load })
  const at = url.replace('listens.example', '127.0.0.1')
  const answers = () =>
    Promise.all(
      ['bridge.example.com', 'listens.example:8080', 'added.example.com', 'rebound.example.com'].map((host) =>
        statusUnder(at, host),
      ),
    )
  expect(await answers()).toEqual([200, 200, 421, 421])
  text = textOf('bridge.example.com, added.example.com')
  expect(await app.reload()).toEqual({ ok: true })
  expect(await answers()).toEqual([200, 200, 200, 421])
})

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { expect, it, onTestFinished } from 'vitest'
import { versionHeader } from '../../src/telemetry/version.ts'
import { cli } from '../support/cli.ts'

/** What has the version of a bridge in its header and answers what no bridge does. */

async function serving(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close().closeAllConnections())
  await new Promise((resolve) => server.once('listening', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function* endless(part: Buffer) {
  for (;;) yield part
}

const env = { ADMIN_TOKEN: 'a-token-that-is-long-enough-to-be-random' }

const commands = [
  'status',
  'deliveries',
  'deliveries main.1',
  'deliveries --follow',
  'why main.1',
  'dead-letters list',
  'quarantine list',
  'rules',
  'orphans list',
  'silence list',
  'silence add --match symbol=a --for 1h',
  'replay main.1',
  'replay main.1 --dry-run',
  'pause mail',
  'explain main.1',
  'plan',
]

it.each(['{}', '[]', '3', 'null', '{"data":{}}', '{"data":[null]}', '{"data":[3],"cursor":null}'])(
  '%s is one sentence with the address, whatever was asked, and never a fault of the command',
  async (body) => {
    const url = await serving(
      (_, response) => void response.writeHead(200, { [versionHeader]: '9' }).end(body),
    )
    const failed = []
    for (const line of commands.map((each) => each.split(' '))) {
      const { code, err } = await cli([...line, '--url', url], env)
      if (code === 0) continue
      failed.push(line)
      expect(err, line.join(' ')).toContain(`What answers at ${url} is no bridge of this version`)
      expect(err.trimEnd().split('\n')).toHaveLength(1)
      expect(err, line.join(' ')).not.toMatch(/unexpected|Error/)
    }
    expect(failed.length).toBeGreaterThan(7)
  },
)

it.each([['as it is'], ['as a gzip bomb']])(
  'an answer without an end, %s, is read up to a limit',
  async (how) => {
    const plain = Buffer.alloc(4 * 1_024 * 1_024, ' ')
    const isBomb = how === 'as a gzip bomb'
    const part = isBomb ? gzipSync(plain) : plain
    const url = await serving((_, response) => {
      response.writeHead(200, { [versionHeader]: '9', ...(isBomb ? { 'content-encoding': 'gzip' } : {}) })
      Readable.from(endless(part)).pipe(response)
    })
    const { code, err } = await cli(['status', '--url', url])
    expect({ code, err }).toEqual({
      code: 1,
      err: `The answer of ${url} is longer than 104857600 bytes; is --url (or --config) right?\n`,
    })
  },
)

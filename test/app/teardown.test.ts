import { describe, expect, it } from 'vitest'
import { Teardown } from '../../src/app/teardown.ts'
import { createLogger } from '../../src/telemetry/log.ts'

const lines: string[] = []
const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } })

describe('teardown', () => {
  it('stops in the opposite order, and only once', async () => {
    const stopped: string[] = []
    const teardown = new Teardown(log)
    for (const name of ['redis', 'queues', 'poller']) teardown.push(name, () => void stopped.push(name))
    await teardown.run(1_000)
    await teardown.run(1_000)
    expect(stopped).toEqual(['poller', 'queues', 'redis'])
  })

  it('goes on past a part that throws and a part that hangs, and names both', async () => {
    const stopped: string[] = []
    const teardown = new Teardown(log)
    teardown.push('first', () => void stopped.push('first'))
    teardown.push('hanging', () => new Promise(() => {}))
    teardown.push('throwing', () => Promise.reject(new Error('no')))
    await teardown.run(20)
    expect(stopped).toEqual(['first'])
    expect(lines.join()).toMatch(/throwing.*hanging/s)
  })
})

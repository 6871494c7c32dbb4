import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { parse } from 'yaml'
import { checkConfigCommand } from '../../src/cli/check-config.ts'
import { fixture } from '../config/config-text.ts'
import { run } from '../support/cli.ts'

const check = (...args: string[]) => run(checkConfigCommand(), ...args)
const path = (name: string) => fixture(name).path

describe('check-config', () => {
  it('says in one line what a config without mistakes holds', async () => {
    const printed = await check(path('good/shared-settings'))
    expect(printed).toMatchObject({
      out: `${path('good/shared-settings')}: no mistakes: 1 source, 2 sinks, 1 route\n`,
      err: '',
      exitCode: 0,
    })
  })

  it('prints every mistake on stderr as FILE:LINE, and ends with code 1', async () => {
    const { out, err, exitCode } = await check(path('bad/unknown-key'))
    expect(exitCode).toBe(1)
    expect(out).toBe('')
    expect(err.split('\n')).toEqual([
      `${path('bad/unknown-key')}:3: sinks.ops.url: found nothing: expected text`,
      `${path('bad/unknown-key')}:5: sinks.ops.urll: unknown key (did you mean url?)`,
      `${path('bad/unknown-key')}:7: retension: unknown key (did you mean retention?)`,
      `${path('bad/unknown-key')}: 3 mistakes`,
      '',
    ])
  })

  it('prints warnings and still ends with code 0', async () => {
    const { err, exitCode } = await check(path('warn/idle-sink'))
    expect(exitCode).toBe(0)
    expect(err).toMatch(/^warning: .*:2: sinks\.spare: no route names this sink/)
  })

  it('warns of a variable that would switch off the checking of certificates', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const { err, exitCode } = await check(path('good/shared-settings'))
    expect(exitCode).toBe(0)
    expect(err).toMatch(/^warning: .*\.yaml: NODE_TLS_REJECT_UNAUTHORIZED=0 .* changes nothing/)
  })

  it('says that a file is not there', async () => {
    const { err, exitCode } = await check('nowhere.yaml')
    expect(exitCode).toBe(1)
    expect(err).toContain('nowhere.yaml: the file cannot be read: it does not exist\n')
  })

  it('--show prints the effective config and no secret', async () => {
    const { out } = await check('--show', path('good/twins'))
    expect(parse(out)).toMatchObject({ retention: { age: '7d' }, sinks: { slack: { timeout: '10s' } } })
    expect(out).toContain('[from file ')
    expect(out).not.toContain('CANARY')
  })

  it('--json tells the same to programs', async () => {
    const bad = JSON.parse((await check('--json', path('bad/poll-order'))).out)
    expect(bad).toMatchObject({
      ok: false,
      mistakes: [
        {
          path: 'sources.main.poll.maxInterval',
          line: 5,
          found: '"1m"',
          remedy: 'change one of the two',
        },
      ],
    })
    expect(bad.mistakes[0].text).toContain(
      ':5: sources.main.poll.maxInterval: found "1m": minInterval (5m) is longer',
    )
    const good = JSON.parse((await check('--json', '--show', path('good/redis-url'))).out)
    expect(good).toMatchObject({ ok: true, warnings: [], config: { redis: { url: '[redacted]' } } })
  })
})

import { expect, it } from 'vitest'
import { deadLettersCommand } from '../../src/cli/dead-letters.ts'
import { deliveriesCommand } from '../../src/cli/deliveries.ts'
import { pauseCommand, resumeCommand } from '../../src/cli/pause.ts'
import { planCommand } from '../../src/cli/plan/plan.ts'
import { quarantineCommand } from '../../src/cli/quarantine.ts'
import { replayCommand } from '../../src/cli/replay.ts'
import { sendTestCommand } from '../../src/cli/send-test.ts'
import { statusCommand } from '../../src/cli/status.ts'
import { whyCommand } from '../../src/cli/why.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { run } from '../support/cli.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** The operator's commands against a running bridge. */

const redis = useRedis()

async function rig() {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const text = `
    redis: { url: "${redis.url}", prefix: ${prefix} }
    http: { listen: "127.0.0.1:0", adminToken: operator-canary }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, budget: { unitsPerDay: 80000 }, poll: { every: 1s } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `
  const { url, lines } = await startApp(text)
  // The config names port 0: the address is given beside it.
  return { sandbox, hook, prefix, url, lines, at: ['--url', url, '--config', writeConfig(text)] }
}

it('status and deliveries tell what is going on, in words and as JSON', async () => {
  const { sandbox, hook, url, at } = await rig()
  const row = sandbox.fire({ headline: 'فولاد از ۵۲۳۰ گذشت', symbol: 'فولاد' })
  await hook.received(1)
  const status = await run(statusCommand(), ...at)
  expect(status.out).toMatch(/ready[\s\S]*main +running[\s\S]*hook +webhook +active/)
  expect(JSON.parse((await run(statusCommand(), ...at, '--json')).out)).toMatchObject({
    ready: { ok: true },
  })
  await until('the delivery is recorded', async () =>
    (await run(deliveriesCommand(), ...at)).out.includes('delivered'),
  )
  const list = await run(deliveriesCommand(), ...at)
  expect(list.out).toContain(`main.${row.id}`)
  expect(list.out).toContain('فولاد از ۵۲۳۰ گذشت')
  // On the clock of the bridge's people, unless they ask for UTC; a command takes what is shown.
  const shown = /main\.\d+ +(\S+)/.exec(list.out)?.[1] ?? ''
  expect(shown).toMatch(/^\d{4}-\d\d-\d\dT\S+\+03:30$/)
  expect(Date.parse(shown)).toBe(Date.parse(row.firedAt))
  expect((await run(deliveriesCommand(), ...at, '--since', shown)).out).toBe(list.out)
  expect((await run(deliveriesCommand(), ...at, '--utc')).out).toMatch(/main\.\d+ +\S+Z /)
  expect((await run(deliveriesCommand(), ...at, '--json')).out).toContain(`"firedAt": "${row.firedAt}"`)
  // What the bridge has learned, by its address alone.
  const plan = ['--units-per-day', '500', '--url', url]
  expect((await run(planCommand(), ...plan)).out).toMatch(/^main: 500 units a day, the coming 24 hours/)
  expect(JSON.parse((await run(planCommand(), ...plan, '--json')).out)).toMatchObject({
    ...{ source: 'main', unitsPerDay: 500, everySeconds: 1 },
  })
  expect(String((await run(planCommand(), '--source', 'no', '--url', url)).thrown)).toMatch(/no source no/)
  const story = await run(deliveriesCommand(), `main.${row.id}`, ...at)
  expect(story.out).toMatch(/hook: delivered[\s\S]*1\. .*delivered.*204/)
  expect(String((await run(deliveriesCommand(), 'main.999999', ...at)).thrown)).toMatch(/main\.999999/)
}, 30_000)

it('dead letters are listed with the reason, sent again, and dropped', async () => {
  const { sandbox, hook, at } = await rig()
  hook.answerWith({ status: 410, body: 'moved away' })
  const rows = sandbox.fireMany(2)
  await hook.received(2)
  await until(
    'both are given up on',
    async () =>
      (await run(deadLettersCommand(), 'list', ...at)).out.match(/ dead .*410 moved away/g)?.length === 2,
  )
  expect(String((await run(deadLettersCommand(), 'retry', ...at)).thrown)).toMatch(/Say which/)
  const dry = await run(deadLettersCommand(), 'drop', '--reason', 'gone', '--dry-run', ...at)
  expect(dry.out).toBe(
    `2 would be dropped, such as main.${rows[1]?.id}, main.${rows[0]?.id}; nothing was changed\n`,
  )
  expect((await run(deadLettersCommand(), 'drop', '--reason', 'other', '--dry-run', ...at)).out).toMatch(
    /^0 would/,
  )
  sandbox.fire()
  hook.answerWith({ status: 400 })
  await until('a third', async () =>
    (await run(deadLettersCommand(), 'list', ...at)).out.includes('rejected: 400'),
  )
  const some = async (...more: string[]) =>
    (await run(deadLettersCommand(), 'list', '--limit', '1', ...more, ...at)).out
  expect(await some('--reason', 'gone')).toMatch(/\n1 of 2; --all lists them all\n$/)
  expect(await some('--reason', 'rejected')).not.toContain('--all')
  expect(await some()).toMatch(/\n1 of 3; --all lists them all\n$/)
  hook.answerWith({ status: 204 })
  expect((await run(deadLettersCommand(), 'retry', `main.${rows[0]?.id}`, ...at)).out).toContain('1 put back')
  await hook.received(4)
  expect((await run(deadLettersCommand(), 'drop', '--all', ...at)).out).toContain('2 dropped')
  expect((await run(deadLettersCommand(), 'list', ...at)).out).toContain('none')
  const why = (await run(whyCommand(), `main.${rows[1]?.id}`, ...at)).out
  expect(why).toMatch(/^the feed has shown it$/m)
  expect(why).toMatch(/^so an operator dropped it$/m)
}, 30_000)

it('nothing that upstream or a receiver wrote reaches the terminal as it came', async () => {
  const { sandbox, hook, url, at } = await rig()
  const hostile = '\u001b[2J\u009b1m\u202eevil\nmain.77  forged \u0007\u2028'
  hook.answerWith({ status: 410, body: hostile })
  const row = sandbox.fire({ headline: hostile, kind: hostile, symbol: hostile, why: hostile })
  sandbox.insert({ id: hostile }, 0)
  const commands = [
    [deadLettersCommand(), 'list'],
    [deliveriesCommand()],
    [deliveriesCommand(), `main.${row.id}`],
    [quarantineCommand(), 'list'],
    [statusCommand()],
  ] as const
  await until('both are told of', async () => {
    const [dead, , , rows] = await Promise.all([
      fetch(`${url}/api/v1/dead-letters`).then((answer) => answer.text()),
      undefined,
      undefined,
      fetch(`${url}/api/v1/quarantine`).then((answer) => answer.text()),
    ])
    return dead.includes('evil') && rows.includes('evil')
  })
  for (const [command, ...args] of commands) {
    for (const json of [[], ['--json']]) {
      const { out } = await run(command, ...args, ...at, ...json)
      expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u202a-\u202e]/u)
      expect(out).not.toMatch(/^main\.77 /m)
      if (command.name() !== 'status') expect(out).toContain('\\u001b[2J\\u009b1m\\u202eevil')
    }
  }
  const told = await run(deliveriesCommand(), `main.${row.id}`, ...at, '--json')
  expect(JSON.parse(told.out)).toMatchObject({ headline: hostile, kind: hostile })
}, 30_000)

it('rows that could not be read are listed, sent where they can be read by now, and dropped', async () => {
  const { sandbox, hook, prefix, at } = await rig()
  sandbox.insert({ id: 'seven' }, 0)
  // As an earlier version set it aside, which could not read it.
  const row = sandbox.makeRow({ id: 9_000 })
  const old = { key: '9000', reason: 'payload: no list', raw: JSON.stringify(row), atMs: 5 }
  await redis.client().lpush(sourceKeys(prefix, 'main').quarantine, JSON.stringify(old))
  const list = () => run(quarantineCommand(), 'list', ...at)
  await until('both are quarantined', async () =>
    /main\.9000[\s\S]*main\.raw-|main\.raw-[\s\S]*main\.9000/.test((await list()).out),
  )
  expect((await list()).out).toMatch(/id: expected a whole number .* found "seven"/)
  expect(String((await run(quarantineCommand(), 'retry', ...at)).thrown)).toMatch(/Say which/)
  expect((await run(quarantineCommand(), 'retry', '--all', ...at)).out).toContain(
    '1 sent, 1 still cannot be read',
  )
  expect(JSON.parse((await hook.received(1))[0]?.body ?? '')).toMatchObject({ data: { delivery: row } })
  expect((await list()).out).not.toContain('main.9000')
  expect(String((await run(quarantineCommand(), 'drop', '--source', 'other', ...at)).thrown)).toContain(
    'no source other',
  )
  const [id = ''] = (await list()).out.match(/main\.raw-\w+/) ?? []
  expect(await run(quarantineCommand(), 'drop', id, ...at)).toMatchObject({ out: '1 dropped\n', exitCode: 0 })
  for (const [action, nothing] of [
    ['drop', '0 dropped'],
    ['retry', '0 sent, 0 still cannot be read'],
  ] as const)
    expect(await run(quarantineCommand(), action, id, ...at)).toMatchObject({
      ...{ out: `${nothing}; not known (any more): 1 of those named\n`, exitCode: 1 },
    })
  expect((await list()).out).toContain('none')
  expect(hook.requests).toHaveLength(1)
}, 30_000)

it('a paused sink keeps its alerts until it is resumed; replay sends what was delivered once more', async () => {
  const { sandbox, hook, at } = await rig()
  expect((await run(pauseCommand(), 'hook', ...at)).out).toContain('paused')
  const row = sandbox.fire()
  await until('it waits', async () => (await run(statusCommand(), ...at)).out.includes('paused'))
  await until('the alert is seen', async () =>
    (await run(deliveriesCommand(), ...at)).out.includes(`main.${row.id}`),
  )
  expect(hook.requests).toHaveLength(0)
  expect((await run(replayCommand(), `main.${row.id}`, '--sink', 'hook', ...at)).out).toBe(
    '0 queued; none has ended at hook: `deliveries ID` shows where each is\n',
  )
  await run(resumeCommand(), 'hook', ...at)
  await hook.received(1)
  await until('it is recorded', async () => (await run(deliveriesCommand(), ...at)).out.includes('delivered'))
  const replayed = await run(replayCommand(), `main.${row.id}`, 'main.424242', ...at)
  expect(replayed.out).toMatch(/1 queued; not known \(any more\): main\.424242/)
  await hook.received(2)
  const [first, second] = hook.requests.map(({ headers }) => headers)
  expect(second?.['webhook-id']).toBe(first?.['webhook-id'])
  // A receiver that remembers ids can tell that this one was asked for.
  expect(first?.['alert-bridge-replay']).toBeUndefined()
  expect(second?.['alert-bridge-replay']).toMatch(/^2\d{3}-\d\d-\d\dT[\d:.]+Z$/)
  expect(String((await run(pauseCommand(), 'nobody', ...at)).thrown)).toMatch(/nobody/)
}, 30_000)

it('a sink that is not there is said to be none, and is no fault of the bridge', async () => {
  const { url, lines } = await rig()
  const change = (path: string, body: object) =>
    fetch(`${url}/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer operator-canary', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const answers = await Promise.all([
    fetch(`${url}/api/v1/deliveries?sink=none`),
    fetch(`${url}/api/v1/dead-letters?sink=none`),
    change('dead-letters/retry', { sink: 'none' }),
    change('dead-letters/drop', { ids: ['main.1'], sink: 'none' }),
    change('replay', { ids: ['main.1'], sink: 'none' }),
    // As the commands begin: it only counts.
    change('replay', { ids: ['main.1'], sink: 'none', limit: 0 }),
    change('dead-letters/drop', { ids: ['main.1'], sink: 'none', limit: 0 }),
    change('replay', { since: '2026-11-21T00:00:00Z', sink: 'none' }),
    change('sinks/none/pause', {}),
  ])
  for (const answer of answers) {
    expect([answer.url, answer.status]).toEqual([answer.url, 404])
    expect(await answer.json()).toMatchObject({ detail: 'There is no sink none.' })
  }
  const page = await fetch(`${url}/?sink=none`)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('None like that.')])
  expect(lines.filter(({ msg }) => /admin request failed|status page lacks/.test(String(msg)))).toEqual([])
}, 30_000)

it('without the token nothing is changed, and the sentence says what to set', async () => {
  const { at } = await rig()
  expect(String((await run(pauseCommand(), 'hook', ...at.slice(0, 2))).thrown)).toMatch(/token/i)
})

it('send-test brings a sample of the context that routes ask for this sink, with its chart', async () => {
  const hook = await startWebhookReceiver()
  const config = writeConfig(`
    sources: { main: { baseUrl: "http://127.0.0.1:9", token: t } }
    sinks:
      hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true }
      desk: { type: discord, url: "${hook.url}", allowPrivateNetworks: true, timeout: 1m }
    routes: [{ sinks: [hook], context: [price, indicators] }, { sinks: [desk], context: [chart] }]
  `)
  for (const sink of ['hook', 'desk'])
    expect((await run(sendTestCommand(), sink, '--config', config)).out).toContain('delivered')
  const [first, second] = await hook.received(2)
  const { context } = (JSON.parse(first?.body ?? '') as { data: { context: object } }).data
  expect(context).toMatchObject({
    price: { data: { symbol: 'فولاد', last: 5_230 } },
    skipped: [{ what: 'indicators', why: 'unavailable' }],
  })
  expect(Object.keys(context)).toEqual(['price', 'skipped'])
  expect(second?.body).toMatch(/content-type: image\/png/i)
  hook.answerWith(({ body }) => ({ status: body.includes('"last"') ? 413 : 204 }))
  expect((await run(sendTestCommand(), 'hook', '--config', config)).out).toMatch(
    /^hook: delivered without context: indicators \(unavailable\), price \(too_large\) in \d+ ms: 204$/m,
  )
})

it('send-test tries the real sink and tells what came back', async () => {
  const hook = await startWebhookReceiver()
  const config = writeConfig(`
    sources: { main: { baseUrl: "http://127.0.0.1:9", token: t } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  const good = startProgram(['send-test', 'hook', '--config', config])
  expect(await good.ended()).toBe(0)
  expect(good.stdout()).toMatch(/hook: delivered in \d+ ms: 204/)
  hook.answerWith({ status: 500, body: 'out of order' })
  const bad = await run(sendTestCommand(), 'hook', '--config', config, '--json')
  expect(bad.exitCode).toBe(1)
  expect(JSON.parse(bad.out)).toMatchObject([{ result: 'retry', reason: 'server_error', status: 500 }])
  // Every object has a constructor of its own.
  for (const name of ['none', 'constructor']) {
    const { thrown } = await run(sendTestCommand(), name, '--config', config)
    expect(String(thrown)).toContain(`There is no sink "${name}" in ${config}; there are hook.`)
  }
  const { thrown } = await run(planCommand(), '--source', 'constructor', '--config', config)
  expect(String(thrown)).toContain('there is no constructor')
})

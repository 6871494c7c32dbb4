import { describe, expect, it } from 'vitest'
import { connect, startSandbox } from '../support/sandbox.ts'

async function start() {
  const sandbox = await startSandbox({ history: 3, controlPort: 0 })
  const call = async (method: string, path: string, body?: unknown, contentType = 'application/json') => {
    const response = await fetch(`${sandbox.controlUrl}${path}`, {
      method,
      ...(body === undefined
        ? {}
        : {
            body: typeof body === 'string' ? body : JSON.stringify(body),
            headers: { 'content-type': contentType },
          }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> & unknown[] }
  }
  return { sandbox, call, client: connect(sandbox) }
}

describe('the control port', () => {
  it('tells what it understands, and every kind of fault', async () => {
    const { call } = await start()
    const { body } = await call('GET', '/')
    expect(Object.keys(body['calls'] as object)).toEqual(
      expect.arrayContaining(['POST /fire', 'POST /faults']),
    )
    expect(Object.keys(body['faults'] as object)).toEqual(
      expect.arrayContaining(['status', 'between', 'bomb']),
    )
  })

  it('fires, puts in, takes out and lists rows', async () => {
    const { call, sandbox } = await start()
    const fired = await call('POST', '/fire', { count: 2, fields: { kind: 'mine' } })
    expect(fired.body).toMatchObject([
      { id: 4, kind: 'mine' },
      { id: 5, kind: 'mine' },
    ])
    expect((await call('POST', '/fire', {})).body).toHaveLength(1)
    await call('POST', '/insert', { row: { id: 'bad' }, at: 1 })
    expect((await call('POST', '/insert', { at: 2 })).body).toMatchObject({ id: 7 })
    expect((await call('POST', '/remove', { id: 5 })).body).toEqual({ removed: true })
    expect((await call('GET', '/rows?count=3')).body.map((row) => (row as { id: number }).id)).toEqual([
      6, 7, 4,
    ])
    expect(sandbox.rows).toHaveLength(6)
  })

  it('declares faults and forgets them', async () => {
    const { call, client } = await start()
    await call('POST', '/faults', { kind: 'status', status: 500, times: 0 })
    await expect(client.deliveries(1)).rejects.toMatchObject({ code: 'server_error' })
    expect((await call('GET', '/state')).body).toMatchObject({
      rows: 3,
      unitsUsed: 1,
      faults: [{ kind: 'status' }],
      requests: [{ status: 500 }],
    })
    await call('DELETE', '/faults')
    await client.deliveries(1)
    expect((await call('GET', '/state?requests=1')).body['requests']).toMatchObject([{ status: 200 }])
  })

  it('changes the rate, the tokens and the account', async () => {
    const { call, client, sandbox } = await start()
    const fired = new Promise((resolve) => sandbox.on('fired', resolve))
    await call('POST', '/rate', { perMinute: 60_000 })
    await fired
    await call('POST', '/rate', { perMinute: 0 })
    expect((await call('POST', '/account', { name: 'other', history: 7 })).body).toEqual({
      name: 'other',
      rows: 7,
    })
    expect((await client.deliveries(1)).total).toBe(7)
    await call('POST', '/token', { state: 'revoked' })
    await expect(client.deliveries(1)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  it('makes tokens with scopes of their own, changes them, and takes the plan from one', async () => {
    const { call, sandbox } = await start()
    const ask = async (path: string) => {
      const headers = { authorization: 'Bearer mine' }
      return (await fetch(`${sandbox.url}/api/v1/${path}`, { headers })).status
    }
    const made = await call('POST', '/token', { value: 'mine', scopes: ['api:macro'] })
    expect(made.body).toEqual({ value: 'mine', scopes: ['api:macro'] })
    expect([await ask('macro'), await ask('alerts')]).toEqual([200, 403])
    await call('POST', '/token', { value: 'mine', state: 'expired' })
    expect(await ask('macro')).toBe(401)
    await call('POST', '/token', { value: 'mine', state: 'valid', hasPlan: false })
    expect(await ask('macro')).toBe(403)
    expect((await call('GET', '/state')).body).toMatchObject({ unitsUsed: 3 })
    expect((await connect(sandbox).deliveries(1)).total).toBe(3)
  })

  it.each<[string, string, unknown, string]>([
    ['POST', '/token', { value: 'two words' }, 'value: expected a token'],
    ['POST', '/token', { value: 'mine', scopes: 'api:macro' }, 'scopes must be a list of strings'],
    ['POST', '/token', { value: 'mine', hasPlan: 'no' }, 'hasPlan must be true or false'],
    ['POST', '/token', {}, 'state must be one of'],
    ['POST', '/fire', '{', 'the body must be a JSON object'],
    ['POST', '/fire', [], 'the body must be a JSON object'],
    ['POST', '/fire', { count: '2' }, 'count must be a number from 0'],
    ['POST', '/fire', { fields: [] }, 'fields must be an object'],
    ['POST', '/remove', {}, 'id must be a number from 0'],
    ['POST', '/token', { state: 'gone' }, 'state must be one of valid, expired, revoked, other_integration'],
    ['POST', '/account', {}, 'name must be a string'],
    ['POST', '/faults', { kind: 'status' }, 'status: status must be a number'],
    ['POST', '/fire', 'x'.repeat(1_100_000), 'the body is longer than 1048576 bytes'],
  ])('refuses %s %s with what is wrong', async (method, path, body, error) => {
    const { call } = await start()
    expect(await call(method, path, body)).toEqual({
      status: 400,
      body: { error: expect.stringContaining(error) },
    })
  })

  it('takes JSON only, which no form of a web page can send', async () => {
    const { call, sandbox } = await start()
    expect((await call('POST', '/fire', '{}', 'text/plain')).status).toBe(400)
    expect(sandbox.rows).toHaveLength(3)
  })

  it('says what it does not know', async () => {
    const { call } = await start()
    expect(await call('GET', '/nothing')).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining('GET /') },
    })
  })

  it('is closed unless it is asked for', async () => {
    expect((await startSandbox()).controlUrl).toBeUndefined()
  })
})

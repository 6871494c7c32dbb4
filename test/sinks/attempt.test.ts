import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'
import { answerTextMax, type ProtocolResult } from '../../src/sinks/outcome.ts'
import { runAttempt } from '../../src/sinks/transport/attempt.ts'
import { bodyBytesMax } from '../../src/sinks/transport/exchange.ts'

const never = new AbortController().signal
const limits = { signal: never, timeoutMs: 5_000 }
const answered = (text: string, status = 500): ProtocolResult => ({ via: 'http', status, text })
const hang = () => new Promise<ProtocolResult>(() => {})

test('a secret that was revealed, as it is or escaped, is not told', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    const password = context.reveal(new Secret('pass/"word" <1>'))
    const forms = [encodeURIComponent(password), 'pass/\\"word\\" <1>', 'pass/&quot;word&quot; &lt;1&gt;']
    return answered(`${password} and ${forms.join(' and ')} and again ${password}`)
  })
  expect(outcome.answer.text).toBe(
    '[redacted] and [redacted] and [redacted] and [redacted] and again [redacted]',
  )
})

test('a secret that the cut would halve is scrubbed before', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hide('canaryCanaryCanary')
    return answered(`${'x'.repeat(answerTextMax - 8)}canaryCanaryCanary`)
  })
  expect(outcome.answer.text).not.toContain('canary')
  expect(outcome.answer.text.length).toBeLessThanOrEqual(answerTextMax)
})

test('a secret that the reading of the answer has halved is not told by its first half', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hide('canaryCanaryCanary')
    return answered(`${' '.repeat(bodyBytesMax - 12)}canaryCanaryCanary`.slice(0, bodyBytesMax))
  })
  expect(outcome.answer.text).toBe('[redacted]')
})

test('a secret in pieces that become one line is not told', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hide('canaryCanaryCanary')
    return answered('canary\u202aCanaryCan\r\nary and c\0a\0n\0a\0r\0y\0C\0a\0n\0a\0r\0y\0C\0a\0n\0a\0r\0y')
  })
  expect(outcome.answer.text).toBe('[redacted] and [redacted]')
})

test('of a secret within another, nothing is left', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hide('secret')
    context.hide('https://hooks.example.com/secret/path')
    return answered('https://hooks.example.com/secret/path')
  })
  expect(outcome.answer.text).toBe('[redacted]')
})

test('ordinary short words of a config do not blot out the answer', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hide('prod')
    return answered('not in production')
  })
  expect(outcome.answer.text).toBe('not in production')
})

test('a short password is not told either, and leaves words alone that it is a part of', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.hideWord('p.d')
    return answered('"p.d" by bob:p.d, not p.dx, pad or prod')
  })
  expect(outcome.answer.text).toBe('"[redacted]" by bob:[redacted], not p.dx, pad or prod')
})

test('the answer is one printable line', async () => {
  const outcome = await runAttempt(limits, async () => answered('a\r\nb\u0000\u001b[31mc\u202ed\ud800'))
  expect(outcome.answer.text).toBe('a b [31mcd\ufffd')
})

test('what was known when the time ran out stands', async () => {
  const outcome = await runAttempt({ ...limits, timeoutMs: 30 }, (context) => {
    context.reportEarly(answered('', 204))
    return hang()
  })
  expect(outcome).toMatchObject({ kind: 'delivered', answer: { status: 204 } })
})

test('what was known does not cover a fault that follows', async () => {
  const outcome = await runAttempt(limits, async (context) => {
    context.reportEarly(answered('', 204))
    throw Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' })
  })
  expect(outcome).toMatchObject({ kind: 'retry', reason: 'connection_lost' })
})

test('work that heeds no signal is left behind when the time is up', async () => {
  expect(await runAttempt({ ...limits, timeoutMs: 30 }, hang)).toMatchObject({
    kind: 'retry',
    reason: 'timeout',
    answer: { text: 'no complete answer within 30 ms' },
  })
})

test('work does not begin once the attempt is called off', async () => {
  let begun = false
  const outcome = await runAttempt({ ...limits, signal: AbortSignal.abort() }, async () => {
    begun = true
    return answered('')
  })
  expect(begun).toBe(false)
  expect(outcome).toMatchObject({ kind: 'retry', reason: 'aborted', sinkFault: false })
})

test('a secret file is read at every attempt, and a missing or empty one waits for the operator', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'alert-bridge-'))
  const file = join(folder, 'token')
  const secret = Secret.fromFile(file)
  const attempt = () =>
    runAttempt(limits, async (context) => answered(`${context.reveal(secret).length} characters`))
  try {
    await writeFile(file, 'first-token\n')
    expect((await attempt()).answer.text).toBe('11 characters')
    await writeFile(file, 'a-longer-second-token\n')
    expect((await attempt()).answer.text).toBe('21 characters')
    // Half-way through being written anew: a receiver would refuse an empty token for good.
    await writeFile(file, '\n')
    expect(await attempt()).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
    expect((await attempt()).answer.text).toBe(`${file} is empty`)
  } finally {
    await rm(folder, { recursive: true })
  }
  expect(await attempt()).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
  expect((await attempt()).answer.text).toBe(`cannot read ${file}`)
})

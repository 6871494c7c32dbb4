import { describe, expect, test } from 'vitest'
import { type Fault, isSlackMessageFault, type Outcome, outcomeOf } from '../../src/sinks/outcome.ts'

/** `kind reason`, with a mark where the sink as a whole is at fault. */
function short(outcome: Outcome): string {
  if (outcome.kind === 'delivered') return 'delivered'
  return `${outcome.kind} ${outcome.reason}${outcome.sinkFault ? ' sink' : ''}`
}

/** The contract's table, written out apart from the code: the last line that holds for a status decides. */
function expectedOfStatus(status: number): string {
  const special: Readonly<Record<number, string>> = {
    302: 'retry redirect sink',
    307: 'retry redirect sink',
    401: 'dead credentials sink',
    403: 'dead credentials sink',
    407: 'retry connect sink',
    408: 'retry timeout sink',
    410: 'dead gone sink',
    425: 'retry server_error sink',
    429: 'retry rate_limited',
  }
  const classes = [
    'retry bad_answer sink',
    'delivered',
    'dead redirect sink',
    'dead rejected',
    'retry server_error sink',
  ]
  return special[status] ?? classes[Math.floor(status / 100) - 1] ?? 'none'
}

describe('an HTTP answer', () => {
  test('has a defined outcome for every status from 100 to 599', () => {
    for (let status = 100; status <= 599; status += 1)
      expect(`${status} ${short(outcomeOf({ via: 'http', status, text: '' }))}`).toBe(
        `${status} ${expectedOfStatus(status)}`,
      )
  })

  test.each([0, 99, 600, 999])('with the status %i, which HTTP does not know, is tried again', (status) => {
    expect(short(outcomeOf({ via: 'http', status, text: '' }))).toBe('retry bad_answer sink')
  })

  test.each([408, 425, 429, 500, 503])('%i passes on the pause that was asked for', (status) => {
    const outcome = outcomeOf({ via: 'http', status, text: 'later', retryAfterMs: 7_000 })
    expect(outcome).toMatchObject({ kind: 'retry', afterMs: 7_000, answer: { status, text: 'later' } })
  })

  test('without a pause names none', () => {
    expect(outcomeOf({ via: 'http', status: 503, text: '' })).not.toHaveProperty('afterMs')
  })
})

describe("Slack's answer", () => {
  test.each([
    [200, 'ok', 'delivered'],
    [200, '', 'retry bad_answer sink'],
    [200, '<html>Sign in</html>', 'retry bad_answer sink'],
    [200, 'OK', 'retry bad_answer sink'],
    [200, 'invalid_token', 'dead credentials sink'],
    [404, 'no_service', 'dead gone sink'],
    [403, 'no_team', 'dead gone sink'],
    [404, 'channel_not_found', 'dead gone sink'],
    [410, 'channel_is_archived', 'dead gone sink'],
    [403, 'action_prohibited', 'dead credentials sink'],
    [403, 'posting_to_general_channel_denied', 'dead credentials sink'],
    [400, 'invalid_payload', 'dead rejected'],
    [400, 'invalid_blocks', 'dead rejected'],
    [400, 'no_text', 'dead rejected'],
    [400, 'a_word_of_tomorrow', 'dead rejected'],
    [500, 'rollup_error', 'retry server_error sink'],
    [500, 'no_service', 'retry server_error sink'],
    [429, 'rate_limited', 'retry rate_limited'],
    [302, '', 'retry redirect sink'],
    [308, '', 'dead redirect sink'],
    [403, '<html>Blocked by your network</html>', 'retry bad_answer sink'],
    [404, '<!doctype html><title>Not found</title>', 'retry bad_answer sink'],
    [429, '<html>Slow down</html>', 'retry rate_limited'],
  ])('%i %s is %s', (status, word, expected) => {
    expect(short(outcomeOf({ via: 'slack', status, word }))).toBe(expected)
  })

  test('says of a message that it is at fault, or of the sink', () => {
    expect(isSlackMessageFault('invalid_blocks')).toBe(true)
    expect(isSlackMessageFault('no_service')).toBe(false)
    expect(isSlackMessageFault('ok')).toBe(false)
  })
})

describe('an SMTP reply', () => {
  test.each([
    ['message', 250, 'delivered'],
    ['message', 251, 'delivered'],
    ['message', 221, 'retry bad_answer sink'],
    ['message', 354, 'retry bad_answer sink'],
    ['message', NaN, 'retry bad_answer sink'],
    ['session', 250, 'retry bad_answer sink'],
    ['auth', 250, 'retry bad_answer sink'],
    ['message', 452, 'retry server_error sink'],
    ['message', 552, 'dead rejected'],
    ['message', 554, 'dead rejected'],
    ['message', 503, 'retry server_error sink'],
    ['recipient', 450, 'retry server_error'],
    ['recipient', 550, 'dead rejected'],
    ['sender', 451, 'retry server_error sink'],
    ['sender', 553, 'dead rejected sink'],
    ['sender', 530, 'retry credentials sink'],
    ['auth', 535, 'retry credentials sink'],
    ['auth', 454, 'retry credentials sink'],
    ['session', 421, 'retry server_error sink'],
    ['session', 554, 'retry server_error sink'],
  ] as const)('at the %s, %i is %s', (stage, code, expected) => {
    expect(short(outcomeOf({ via: 'smtp', code, stage, text: '' }))).toBe(expected)
  })
})

test.each([
  ['aborted', 'retry aborted'],
  ['bad_answer', 'retry bad_answer sink'],
  ['blocked_address', 'dead blocked_address sink'],
  ['blocked_name', 'retry blocked_address sink'],
  ['connect', 'retry connect sink'],
  ['connection_lost', 'retry connection_lost sink'],
  ['credentials', 'retry credentials sink'],
  ['dns', 'retry dns sink'],
  ['timeout', 'retry timeout sink'],
  ['tls', 'retry tls sink'],
  ['unrenderable', 'dead unrenderable'],
] satisfies [Fault, string][])('the fault %s is %s', (fault, expected) => {
  expect(short(outcomeOf({ via: 'fault', fault, text: '' }))).toBe(expected)
})

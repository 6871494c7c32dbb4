import { describe, expect, test } from 'vitest'
import { teamsMessage } from '../../../src/sinks/teams/card.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'
import { page, refusalPages, serve } from '../serving.ts'

const config = (origin: string) => ({
  type: 'teams',
  url: `${origin}/workflows/x/invoke?sp=run&sig=signature`,
})

describe('the card', () => {
  test.each([
    ['persian', persian, persianDisplay],
    ['english', english, englishDisplay],
    ['hostile', hostile, englishDisplay],
  ] as const)('of the %s sample is the one that was looked at', async (name, alert, display) => {
    const text = `${JSON.stringify(teamsMessage({ alert }, display), null, 2)}\n`
    await expect(text).toMatchFileSnapshot(`../golden/teams-${name}.json`)
  })

  test('is posted as the one attachment of a message', async () => {
    const { request, body } = await serve({ config })
    expect(request.path).toBe('/workflows/x/invoke?sp=run&sig=signature')
    expect(body).toMatchObject({
      type: 'message',
      attachments: [
        { contentType: 'application/vnd.microsoft.card.adaptive', content: { type: 'AdaptiveCard' } },
      ],
    })
  })

  test('holds upstream text only where no markup is read, and names nobody', () => {
    const card = JSON.stringify(teamsMessage({ alert: hostile }, englishDisplay))
    expect(card).not.toMatch(/"type":"(TextBlock|FactSet|Fact|Image|Input\.\w+)"/)
    expect(card).not.toContain('entities')
    expect(card).not.toContain('evil.example')
  })

  test('reads from right to left for who reads Persian', () => {
    expect(JSON.stringify(teamsMessage({ alert: persian }, persianDisplay))).toContain('"rtl":true')
    expect(JSON.stringify(teamsMessage({ alert: persian }, englishDisplay))).toContain('"rtl":false')
  })

  test('is smaller than Teams allows, whatever the alert', () => {
    for (const piece of ['ب', '"', '\\', '@a', '漢', '👩‍👩‍👧‍👦', '"\n'])
      for (const display of [persianDisplay, englishDisplay]) {
        const long = piece.repeat(9_000)
        const alert = alertOf({
          headline: long,
          why: long,
          symbol: long,
          kind: long,
          ruleIds: [long],
          url: `https://example.com/${'a'.repeat(1_900)}`,
        })
        const bytes = Buffer.byteLength(JSON.stringify(teamsMessage({ alert }, display)))
        expect(bytes).toBeLessThanOrEqual(28_000)
      }
  })
})

describe('the answer', () => {
  const wrapped = (status: number) =>
    `Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error ${status} with ContextId x..`
  const fault = (status: number, code: string) => ({
    status,
    body: JSON.stringify({ error: { code, message: 'The workflow says no.' } }),
  })

  test.each([
    [{ status: 202 }, { kind: 'delivered', answer: { status: 202 } }],
    [page, { kind: 'retry', reason: 'bad_answer' }],
    ...refusalPages,
    [{ status: 200, body: '1' }, { kind: 'delivered' }],
    [
      { status: 200, body: wrapped(429) },
      { kind: 'retry', reason: 'rate_limited' },
    ],
    [
      { status: 200, body: wrapped(413) },
      { kind: 'dead', reason: 'rejected' },
    ],
    [
      { status: 200, body: wrapped(502) },
      { kind: 'retry', reason: 'bad_answer' },
    ],
    [
      fault(400, 'WorkflowTriggerIsNotEnabled'),
      {
        kind: 'dead',
        reason: 'gone',
        answer: { text: 'WorkflowTriggerIsNotEnabled: The workflow says no.' },
      },
    ],
    [fault(404, 'WorkflowNotFound'), { kind: 'dead', reason: 'gone', sinkFault: true }],
    [fault(401, 'DirectApiAuthorizationRequired'), { kind: 'dead', reason: 'credentials' }],
    [fault(400, 'TriggerInputSchemaMismatch'), { kind: 'dead', reason: 'rejected', sinkFault: false }],
    [{ status: 413 }, { kind: 'dead', reason: 'rejected' }],
    [
      { status: 429, headers: { 'retry-after': '12' } },
      { kind: 'retry', reason: 'rate_limited', afterMs: 12_000 },
    ],
    [{ status: 504 }, { kind: 'retry', reason: 'server_error' }],
  ])('%o is %o', async (answer, expected) => {
    expect((await serve({ config, answer })).outcome).toMatchObject(expected)
  })
})

import { describe, expect, it } from 'vitest'
import { webhookBody } from '../../src/sinks/body.ts'
import { mailMessage } from '../../src/sinks/email/message.ts'
import { plainMessage, slackMessage } from '../../src/sinks/slack/blocks.ts'
import { alertOf, englishDisplay, persianDisplay } from './samples.ts'

/** How many alerts a throttle held back before this one: told once, and not a word where none was. */

const alert = alertOf({})
const parties = { from: { name: 'Alerts', address: 'alerts@example.com' }, to: 'desk@example.com' }

describe('what was held back', () => {
  it('stands beside the delivery in a webhook', () => {
    expect(JSON.parse(webhookBody({ alert, heldBack: 3 })).data).toEqual({
      source: alert.source,
      heldBack: 3,
      delivery: alert.row,
    })
    expect(JSON.parse(webhookBody({ alert })).data).toEqual({ source: alert.source, delivery: alert.row })
  })

  it('is a line of a Slack message, with and without blocks', () => {
    const message = slackMessage({ alert, heldBack: 1_234 }, englishDisplay)
    expect(JSON.stringify(message.blocks).match(/1,234 more held back/g)).toHaveLength(1)
    expect(plainMessage({ alert, heldBack: 1 }, englishDisplay).text).toContain('\n1 more held back')
    expect(JSON.stringify(slackMessage({ alert }, englishDisplay))).not.toContain('held back')
  })

  it('is a line of a mail, in both parts', () => {
    const mail = mailMessage({ alert, heldBack: 2 }, parties, englishDisplay)
    expect([mail.text, mail.html].map((part) => part.match(/2 more held back/g)?.length)).toEqual([1, 1])
    const none = mailMessage({ alert }, parties, englishDisplay)
    expect(none.text + none.html).not.toContain('held back')
    expect(mail.messageId).toBe(none.messageId)
  })

  it('is told in Persian to who reads Persian', () => {
    expect(plainMessage({ alert, heldBack: 12 }, persianDisplay).text).toContain('۱۲ هشدار دیگر نگه داشته شد')
    expect(mailMessage({ alert, heldBack: 12 }, parties, persianDisplay).text).toContain('\u200f۱۲ هشدار')
  })
})

import { fieldsOf } from '../../alert/json/json.ts'
import type { Meaning } from '../outcome.ts'
import { createRequestSink, isSuccess, type ResponseDetails } from '../request-sink.ts'
import { secretUrl } from '../secret-url.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { jsonAnswer } from '../transport/json-answer.ts'
import { teamsMessage } from './card.ts'
import { type TeamsConfig, teamsConfigSchema } from './config.ts'

export const teams = { schema: teamsConfigSchema, create: createTeamsSink } as const

/**
 * Posts alerts to a workflow of Microsoft Teams. Its 202 means that the workflow has accepted the alert; only the owner
 * of the workflow can see what it does later.
 */
function createTeamsSink(name: string, config: TeamsConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, (parcel, context) => ({
    url: secretUrl(config.url, 'the Teams address', context).href,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(teamsMessage(parcel, tools.display)),
    expectsJson: true,
    readBody: sayMore,
  }))
}

function sayMore(reply: HttpResponse): ResponseDetails {
  if (isSuccess(reply)) return { meaning: wrapped(reply.body) }
  const { code, message } = fieldsOf(jsonAnswer(reply.body)['error'])
  const text = [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  const meaning = meaningOf(typeof code === 'string' ? code : '', reply.status)
  return { meaning, ...(text === '' ? {} : { text }) }
}

/**
 * Old connectors (webhook.office.com) always answer 200, and write the status from Teams into the body.
 */
function wrapped(body: string): Meaning | undefined {
  if (!/^Webhook message delivery failed/i.test(body)) return undefined
  const status = Number(/HTTP error (\d{3})/i.exec(body)?.[1])
  if (status === 429) return 'rate_limited'
  if (status === 401 || status === 403) return 'credentials'
  if (status === 404 || status === 410) return 'gone'
  return status === 400 || status === 413 ? 'rejected' : 'bad_answer'
}

/** `gone`: a workflow that was switched off or deleted; `credentials`: its address, with the signature, was replaced. */
function meaningOf(code: string, status: number): Meaning | undefined {
  if (/^Workflow(TriggerIsNotEnabled|NotFound|TriggerNotFound|Disabled)$/.test(code)) return 'gone'
  if (/Authori[sz]ation/.test(code)) return 'credentials'
  return status === 404 ? 'gone' : undefined
}

import { bodyWriter } from '../body.ts'
import { createRequestSink } from '../request-sink.ts'
import { hideUrl } from '../secret-url.ts'
import type { Sink } from '../sink.ts'
import { createUrlTemplate, type UrlTemplate, urlTemplateProblem } from '../template/url-template.ts'
import type { SinkTools } from '../tools.ts'
import { SinkError } from '../transport/fault.ts'
import { ownHeaders, traceHeaders } from '../transport/headers.ts'
import { type HttpSinkConfig, httpConfigSchema } from './config.ts'

export const http = { schema: httpConfigSchema, create: createHttpSink } as const

/** Any HTTP request that an operator can configure. Any 2xx is an acknowledgement; nothing is signed. */
function createHttpSink(name: string, config: HttpSinkConfig, tools: SinkTools): Sink {
  const writer = bodyWriter(config, tools.display)
  // The address may be in a file that changes: a new text makes a new template.
  let current: { readonly text: string; readonly template: UrlTemplate } | undefined

  function templateOf(text: string): UrlTemplate {
    if (current?.text === text) return current.template
    if (urlTemplateProblem(text) !== undefined)
      throw new SinkError('credentials', `the text in ${config.url.file ?? 'url'} is no usable address`)
    current = { text, template: createUrlTemplate(text, tools.display) }
    return current.template
  }

  return createRequestSink(name, config, tools, (parcel, helpers, attempt) => {
    const url = templateOf(helpers.reveal(config.url).trim()).render(parcel)
    hideUrl(url, helpers)
    for (const token of writer.tokens) helpers.hide(token)
    return {
      url: url.href,
      method: config.method,
      headers: {
        ...traceHeaders(name, tools, parcel, attempt),
        ...ownHeaders(config, helpers),
        'content-type': writer.contentType,
      },
      body: writer.write(parcel),
    }
  })
}

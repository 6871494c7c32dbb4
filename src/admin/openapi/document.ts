import * as z from 'zod'
import { tokenHeader, version } from '../../telemetry/version.ts'
import type { About, KnownRoute } from './about.ts'
import {
  alertStory,
  auditRow,
  deadLetter,
  deliveryRow,
  orphan,
  problem,
  quarantinedRow,
  silence,
} from './answers.ts'
import { alertFired, alertFiredCloudEvent, webhookHeaders } from './webhooks.ts'

/** The document of the HTTP API (OpenAPI 3.1), made from the schemas by which requests are checked. */
export function openApiDocument(routes: readonly KnownRoute[]): Readonly<Record<string, unknown>> {
  const schemas = new Schemas()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { method, path, about } of routes) {
    if (!about) continue
    const address = path.replaceAll(/:(\w+)/g, '{$1}')
    paths[address] = { ...paths[address], [method.toLowerCase()]: operationOf(method, path, about, schemas) }
  }
  const webhooks = webhooksOf(schemas)
  return {
    openapi: '3.1.0',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: {
      title: 'alert-bridge',
      version,
      description: 'What the running bridge answers to its operators, and what it sends to webhooks.',
    },
    servers: [{ url: '/' }],
    paths,
    webhooks,
    components: {
      schemas: schemas.all(),
      securitySchemes: {
        adminToken: { type: 'http', scheme: 'bearer', description: 'http.adminToken of the config.' },
        adminTokenHeader: {
          ...{ type: 'apiKey', in: 'header', name: tokenHeader },
          description: 'The same, where a proxy needs Authorization for a login of its own.',
        },
      },
      responses: {
        Problem: {
          description: 'It was not done; `detail` says why, and what to do (RFC 9457).',
          content: problemContent(schemas),
        },
      },
    },
  }
}

/** Collects the schemas that have a name, so that each is written once. */
class Schemas {
  readonly #registry = z.registry<{ id: string }>()

  constructor() {
    for (const [id, schema] of Object.entries(named)) this.reference(id, schema)
  }

  reference(id: string, schema: z.ZodType): object {
    if (!this.#registry.has(schema)) this.#registry.add(schema, { id })
    return { $ref: `#/components/schemas/${this.#registry.get(schema)?.id}` }
  }

  all(): Readonly<Record<string, unknown>> {
    const { schemas } = z.toJSONSchema(this.#registry, {
      io: 'input',
      uri: (id) => `#/components/schemas/${id}`,
      override: ({ jsonSchema }) => {
        // The pattern of a date is as long as a page, and says the same.
        if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
      },
    })
    return Object.fromEntries(
      Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]),
    )
  }
}

/** Rows of several answers. */
const named = {
  DeliveryRow: deliveryRow,
  DeadLetter: deadLetter,
  AlertStory: alertStory,
  AuditRow: auditRow,
  Silence: silence,
  Orphan: orphan,
  QuarantinedRow: quarantinedRow,
}

function operationOf(method: string, path: string, about: About, schemas: Schemas) {
  const id = operationId(method, path)
  const { says, parameters = {}, body, answer, status = 200, needsToken, takesKey } = about
  const content =
    typeof answer === 'string' ? textOf(answer) : jsonOf(schemas.reference(`${id}Answer`, answer))
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(parameters).map(([name, field]) => ({
    name,
    in: 'query',
    required: false,
    schema: parameterOf(field as z.ZodType),
  }))
  const key = takesKey
    ? [{ name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 257 } }]
    : []
  const all = [...inPath, ...inQuery, ...key]
  return {
    operationId: id,
    summary: says,
    ...(all.length === 0 ? {} : { parameters: all }),
    ...(body === undefined
      ? {}
      : { requestBody: { content: jsonOf(schemas.reference(`${id}Request`, body)) } }),
    ...(needsToken ? { security: [{ adminToken: [] }, { adminTokenHeader: [] }] } : {}),
    responses: {
      [status]: { description: says, content },
      default:
        typeof answer === 'string'
          ? {
              description: 'What is wrong, in the same form, or a problem.',
              content: { ...content, ...problemContent(schemas) },
            }
          : { $ref: '#/components/responses/Problem' },
    },
  }
}

/** `getApiV1DeliveriesSourceId` without what all have: `getDeliveriesSourceId`. */
function operationId(method: string, path: string): string {
  const words = path.replace(/^\/api\/v1/, '').split(/[^A-Za-z]+/)
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return method.toLowerCase() + (name || 'Page')
}

function parameterOf(field: z.ZodType): object {
  const { $schema: _, pattern, ...schema } = z.toJSONSchema(field, { io: 'input' })
  return schema.format === 'date-time' || pattern === undefined ? schema : { ...schema, pattern }
}

function jsonOf(schema: object) {
  return { 'application/json': { schema } }
}

function problemContent(schemas: Schemas) {
  return { 'application/problem+json': { schema: schemas.reference('Problem', problem) } }
}

function textOf(mediaType: string) {
  return { [mediaType]: { schema: { type: 'string' } } }
}

function webhooksOf(schemas: Schemas) {
  const parameters = Object.entries(webhookHeaders).map(([name, description]) => ({
    name,
    in: 'header',
    required: name === 'webhook-id' || name === 'webhook-timestamp',
    description,
    schema: { type: 'string' },
  }))
  return {
    'alert.fired': {
      post: {
        operationId: 'alertFired',
        summary: 'An alert fired; at least once, with the same webhook-id each time',
        parameters,
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: schemas.reference('AlertFired', alertFired) },
            'application/cloudevents+json': {
              schema: schemas.reference('AlertFiredCloudEvent', alertFiredCloudEvent),
            },
          },
        },
        responses: {
          '2XX': { description: 'Acknowledged.' },
          '4XX': { description: 'Given up on; 408, 425 and 429 are tried again.' },
          '5XX': { description: 'Tried again, as the retry of the sink says.' },
        },
      },
    },
  }
}

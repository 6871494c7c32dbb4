import { resolve } from 'node:path'
import { domainToASCII } from 'node:url'
import * as z from 'zod'
import { durationWithin, tokenField } from '../lib/fields.ts'
import { hostPort } from '../lib/host-port.ts'
import { httpUrlProblem } from '../sinks/common-config.ts'
import { headersField } from '../sinks/headers-config.ts'
import { sinkConfigSchema } from '../sinks/sink-config.ts'
import { logLevels } from '../telemetry/log-level.ts'
import { withIntervals } from './checks/intervals.ts'
import { redisSchema } from './redis.ts'
import { routeSchema } from './route.ts'
import { sourceSchema, timeZoneField } from './source.ts'

/**
 * The whole config, strict, with every default. What a schema cannot check (a route that names a sink that is not there,
 * a pace that contradicts itself) is in `check.ts`; what is allowed but probably not meant is in `warnings.ts`. Only
 * `loadConfig` reads a config.
 */
export type Config = z.output<typeof configSchema>
export type SourceConfig = Config['sources'][string]

/** A source or sink: part of metric labels, job ids and queue keys, so no dots, and never a bare number. */
const nameField = z
  .string()
  .regex(
    /^(?!\d+$)[a-z0-9-]{1,40}$/,
    'expected a name of at most 40 of a-z, 0-9 and -, and not a bare number',
  )

const listenWords = 'expected host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080'
const listenField = z.string(listenWords).transform(parseListen).meta({ show: hostPort })

const hostWords = 'expected a host name without scheme and port, such as bridge.example.com'
const hostField = z.string(hostWords).transform(parseHost)

export const configSchema = z.strictObject({
  redis: redisSchema.prefault({}),
  dataDir: z
    .string()
    .min(1)
    .refine((path) => !path.includes('\0'), 'expected a path without the character NUL')
    .refine(
      (path) => !/^\/(?:proc|sys)(?:\/|$)/.test(resolve(path)),
      'expected a directory that can be made: none can under /proc or /sys',
    )
    .default('./data')
    .describe('Where the embedded Redis keeps its data; a relative path starts from the working directory.'),
  retention: z
    .strictObject({
      age: durationWithin(60_000, 366 * 86_400_000).prefault('7d'),
      count: z.int().min(100).max(10_000_000).default(100_000),
    })
    .prefault({})
    .describe(
      'How long, and for how many deliveries of a sink, the record of a delivered alert is kept; a day and 10000 at the least.',
    ),
  http: z
    .strictObject({
      listen: listenField.prefault('127.0.0.1:8080'),
      hosts: z
        .array(hostField)
        .default([])
        .describe(
          'Further names that the server answers to, beside loopback, IP addresses and that of listen.',
        ),
      adminToken: tokenField
        .optional()
        .describe(
          'Without one, everything that changes something is off. A long random one: openssl rand -hex 32.',
        ),
    })
    .prefault({}),
  display: z
    .strictObject({
      timeZone: timeZoneField.default('Asia/Tehran'),
      calendar: z.enum(['jalali', 'gregorian', 'both']).default('both'),
      language: z.enum(['fa', 'en']).default('en'),
    })
    .prefault({})
    .describe('How messages and the status page show times, and the language of their words.'),
  traces: z
    .strictObject({
      url: z.string().superRefine((text, context) => {
        const message = httpUrlProblem(text, { userinfo: false })
        if (message !== undefined) context.addIssue({ code: 'custom', message })
      }),
      headers: headersField(),
    })
    .optional()
    .describe(
      'Where spans of each alert go, from firing to acknowledged, by OTLP over HTTP (JSON): http://collector:4318/v1/traces. Receivers get `traceparent`. Left out: no traces.',
    ),
  log: z.strictObject({ level: z.enum(logLevels).default('info') }).prefault({}),
  sources: atLeastOne(
    sourceSchema.transform((source) => ({ ...source, poll: withIntervals(source.budget, source.poll) })),
    'source',
  ),
  sinks: atLeastOne(sinkConfigSchema, 'sink'),
  routes: z.array(routeSchema).min(1, 'expected at least one route'),
  operators: z
    .array(z.string())
    .default([])
    .describe('Sinks that get a notice when the bridge itself needs a person.'),
})

interface Listen {
  readonly host: string
  readonly port: number
}

/** A host as browsers send it: in lower case, and letters outside ASCII in their ASCII form. */
function parseHost(text: string, context: z.RefinementCtx): string {
  const name = domainToASCII(text)
  if (/^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/.test(name)) return name
  context.addIssue({ code: 'custom', message: hostWords })
  return z.NEVER
}

function atLeastOne<T extends z.ZodType>(value: T, noun: string) {
  return z
    .record(nameField, value)
    .refine((record) => Object.keys(record).length > 0, `expected at least one ${noun}`)
}

/** `127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address; with port 0 the system chooses one. */
function parseListen(text: string, context: z.RefinementCtx): Listen {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]*]*)):(\d{1,5})$/i.exec(text)
  const port = Number(match?.[3])
  if (match && port <= 65_535) return { host: match[1] || match[2] || '0.0.0.0', port }
  context.addIssue({ code: 'custom', message: listenWords })
  return z.NEVER
}

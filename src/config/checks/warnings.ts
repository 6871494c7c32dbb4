import { accessSync, constants } from 'node:fs'
import { contextUnits, contextUnitsMax } from '../../alert/context.ts'
import { property } from '../../alert/json/json.ts'
import { satisfies } from '../../alert/match/match.ts'
import { wideFieldRemedy, wideFields, wideFieldText } from '../../alert/match/match-form.ts'
import { atOnce } from '../../alert/match/turns.ts'
import { tokenCharsMin } from '../../lib/secret.ts'
import { refusedAddress } from '../../sinks/address-config.ts'
import type { Env } from '../file/env.ts'
import { describeReadError } from '../file/read-error.ts'
import type { Complaint } from '../mistakes/explain.ts'
import type { Mistake } from '../mistakes/mistake.ts'
import type { Config } from '../schema.ts'
import { contextBesidePolls, overcommittedPaces, sharedTokens, sharingWith } from './accounts.ts'
import { intervalComplaints } from './check.ts'
import { isLoopback, isPlain } from './plain.ts'

/** What is allowed but probably not meant. `given` is the config as written, before the defaults. */
export function warningsOf(config: Config, given: unknown): Complaint[] {
  return [
    ...Object.entries(config.sources).flatMap(([name, { baseUrl, budget, startFrom }]) => {
      const path = ['sources', name]
      const written = property(property(property(property(given, 'sources'), name), 'budget'), 'unitsPerDay')
      return [
        ...(written === undefined
          ? [
              {
                path: [...path, 'budget', 'unitsPerDay'],
                message: `the budget is not said, so ${budget.unitsPerDay} units a day are assumed`,
                bare: true,
                remedy: 'set it to what this bridge may spend of the account',
              },
            ]
          : []),
        ...(typeof startFrom === 'object' && startFrom.sinceMs > Date.now()
          ? [
              {
                path: [...path, 'startFrom'],
                message: 'this is in the future: on a first start, alerts that fire before it are never sent',
                bare: true,
              },
            ]
          : []),
        ...(isPlain(baseUrl)
          ? [{ path: [...path, 'baseUrl'], message: 'the token travels unencrypted', remedy: 'use https' }]
          : []),
      ]
    }),
    ...intervalComplaints(property(given, 'sources'), 'warning'),
    ...overcommittedPaces(config),
    ...sharedTokens(config),
    ...refusedAddresses(config),
    ...idleSinks(config),
    ...idleRoutes(config),
    ...wideMatches(config),
    ...openHttp(config),
    ...weakAdminToken(config),
    ...plainTraces(config),
    ...unaffordableContext(config),
    ...unseenContext(config),
    ...idleLogin(config, given),
    ...unreadableTls(config),
  ]
}

/** No mistake: a config may be checked on another machine than that of the files, or serve a role that needs none of them. */
function unreadableTls({ redis, sinks }: Config): Complaint[] {
  const users = [
    { path: ['redis', 'tls'], user: redis },
    ...Object.entries(sinks).map(([name, user]) => ({ path: ['sinks', name, 'tls'], user })),
  ]
  return users.flatMap(({ path, user }) =>
    ['ca', 'cert', 'key'].flatMap((key) => {
      const file = property(property(user, 'tls'), key)
      const reason = typeof file === 'string' ? unreadable(file) : undefined
      if (reason === undefined) return []
      const remedy = 'the bridge does not start without it'
      return [{ path: [...path, key], message: `the file cannot be read: ${reason}`, remedy }]
    }),
  )
}

function unreadable(file: string): string | undefined {
  try {
    accessSync(file, constants.R_OK)
    return undefined
  } catch (thrown) {
    return describeReadError(thrown)
  }
}

/** Warnings about environment variables; they have no line in the file. */
export function environmentWarnings(env: Env): Mistake[] {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return []
  return [
    {
      path: '',
      message:
        'NODE_TLS_REJECT_UNAUTHORIZED=0 is set in the environment and changes nothing: the bridge checks every certificate',
      remedy: 'unset it; NODE_EXTRA_CA_CERTS names the file of an authority of your own',
    },
  ]
}

function idleLogin({ redis }: Config, given: unknown): Complaint[] {
  if (redis.mode !== 'embedded') return []
  return ['username', 'password']
    .filter((key) => property(property(given, 'redis'), key) !== undefined)
    .map((key) => {
      return { path: ['redis', key], message: 'the embedded server asks for no login', bare: true }
    })
}

function idleSinks(config: Config): Complaint[] {
  const used = new Set([...config.routes.flatMap(({ sinks }) => sinks), ...config.operators])
  return Object.keys(config.sinks)
    .filter((name) => !used.has(name))
    .map((name) => ({
      path: ['sinks', name],
      message: 'no route names this sink, so nothing is sent to it',
      bare: true,
    }))
}

function refusedAddresses({ sinks }: Config): Complaint[] {
  return Object.entries(sinks).flatMap(([name, sink]) => {
    const refused = refusedAddress(sink)
    return refused === undefined
      ? []
      : [{ path: ['sinks', name, refused.key], message: refused.message, bare: true }]
  })
}

/** Warns of mutes without any limit: they mute everything. */
function idleRoutes({ routes }: Config): Complaint[] {
  return routes.flatMap(({ mute }, index) =>
    mute.flatMap(({ days, holidays, from, to }, place) => {
      if (days !== undefined || holidays.length > 0 || from !== '00:00' || to !== '24:00') return []
      const path = ['routes', index, 'mute', place]
      return [{ path, message: 'this holds all day and every day, so the route takes no alert', bare: true }]
    }),
  )
}

function wideMatches({ routes }: Config): Complaint[] {
  return routes.flatMap(({ match }, index) =>
    wideFields(match).map((path) => ({
      path: ['routes', index, 'match', ...path],
      message: wideFieldText,
      bare: true,
      remedy: wideFieldRemedy,
    })),
  )
}

function openHttp({ http }: Config): Complaint[] {
  if (isLoopback(http.listen.host)) return []
  const message =
    'whoever reaches this address can read alerts, metrics, and the audit with its comments and addresses'
  return [{ path: ['http', 'listen'], message, remedy: 'listen on 127.0.0.1, or guard it by a proxy' }]
}

/** Warns of a token that could be guessed; nothing of it is quoted. */
function weakAdminToken({ http }: Config): Complaint[] {
  const token = http.adminToken?.reveal()
  if (!token) return []
  const fault =
    token.length < tokenCharsMin
      ? `is shorter than ${tokenCharsMin} characters`
      : new Set(token).size < differentCharsMin
        ? `has fewer than ${differentCharsMin} different characters`
        : undefined
  if (fault === undefined) return []
  const path = ['http', http.adminToken?.file === undefined ? 'adminToken' : 'adminTokenFile']
  const remedy = 'make one with: openssl rand -hex 32'
  return [{ path, message: `it can be guessed, since it ${fault}`, remedy, bare: true }]
}

function plainTraces({ traces }: Config): Complaint[] {
  if (traces === undefined || Object.keys(traces.headers).length === 0 || !isPlain(traces.url)) return []
  return [{ path: ['traces', 'url'], message: 'the headers travel unencrypted', remedy: 'use https' }]
}

/** A random token of 32 digits has more. */
const differentCharsMin = 8

/** Warns of context that can never be bought: messages would always say that it was skipped. */
function unaffordableContext({ routes, sources }: Config): Complaint[] {
  return routes.flatMap(({ context, match }, index) => {
    const from = Object.entries(sources).filter(
      ([source]) => match.source === undefined || atOnce(satisfies('source', [source], match.source)),
    )
    return context.flatMap((name, place) =>
      from.flatMap(
        ([
          source,
          {
            budget,
            context: { unitsShare },
          },
        ]) => {
          const units = contextUnits(name)
          const { unitsPerDay } = budget
          const path = ['routes', index, 'context', place]
          const tooPoor = `${name} costs ${unitsText(units)}, more than source ${source} may ever spend on it`
          if (contextUnitsMax(unitsPerDay, unitsShare) < units)
            return [
              {
                path,
                message: `${tooPoor} (${contextUnitsMax(unitsPerDay, unitsShare)} of ${unitsPerDay} a day)`,
                bare: true,
                remedy: `raise sources.${source}.context.unitsShare, or leave ${name} out`,
              },
            ]
          const sharing = sharingWith(sources, source)
          const besidePolls = contextBesidePolls(sharing, unitsPerDay)
          if (besidePolls >= units) return []
          const [pace, remedy] = sharing.some(({ poll }) => poll.every !== undefined)
            ? [
                'every',
                sharing.length === 1
                  ? `raise sources.${source}.poll.every`
                  : 'raise poll.every of its account',
              ]
            : ['floor', `lower sources.${source}.poll.floor`]
          return [
            {
              path,
              message: `${tooPoor}: polls come first, and poll.${pace} leaves ${besidePolls} of ${unitsPerDay} a day to context`,
              bare: true,
              remedy: `${remedy}, or leave ${name} out`,
            },
          ]
        },
      ),
    )
  })
}

/** Warns of context that is bought for digests alone, which show no more of it than lists do. */
function unseenContext({ routes, sinks }: Config): Complaint[] {
  return routes.flatMap(({ context, sinks: names }, index) => {
    const areDigests = names.every((name) => property(sinks[name], 'digest') !== undefined)
    if (!areDigests) return []
    return context.flatMap((name, place) => {
      if (name === 'price' || name === 'chart') return []
      const path = ['routes', index, 'context', place]
      const message = `a digest shows ${name} only where it has a single alert, and each alert may cost ${unitsText(contextUnits(name))} for it`
      const remedy = `leave ${name} out, or name a sink without digest in this route`
      return [{ path, message, bare: true, remedy }]
    })
  })
}

function unitsText(units: number): string {
  return units === 1 ? '1 unit' : `${units} units`
}

import type { FastifyInstance } from 'fastify'
import type * as z from 'zod'

/** What the document of the API says of a route. It is written at the route itself, in Fastify's `config`. */
export interface About {
  /** What it does, in a sentence without a full stop. */
  readonly says: string
  readonly parameters?: z.ZodRawShape
  readonly body?: z.ZodType
  /** A JSON answer, or the media type of another one. */
  readonly answer: z.ZodType | string
  /** Of the answer; 200 without it. */
  readonly status?: number
  /** Only with the admin token. */
  readonly needsToken?: boolean
  readonly takesKey?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `null` for an address that only refuses. */
    readonly about?: About | null
  }
}

export interface KnownRoute {
  readonly method: string
  /** As Fastify has it: `/api/v1/sinks/:name/pause`. */
  readonly path: string
  readonly about: About | null
}

/** Every route that is added from now on, but for HEAD, which answers as GET does. Each must say what it is. */
export function collectRoutes(app: FastifyInstance): readonly KnownRoute[] {
  const routes: KnownRoute[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    const about = config?.about
    if (about === undefined)
      throw new Error(`${method} ${url} says nothing about itself for the document of the API`)
    for (const each of [method].flat()) if (each !== 'HEAD') routes.push({ method: each, path: url, about })
  })
  return routes
}

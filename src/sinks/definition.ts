import type * as z from 'zod'
import type { Sink } from './sink.ts'
import type { SinkTools } from './tools.ts'

/** A type of sink, as its folder hands it over: what its config looks like, and how a sink is made of one. */
export interface SinkDefinition<Schema extends z.ZodType> {
  readonly schema: Schema
  /** Throws a UserError over a file (CA, certificate, key) that cannot be read. */
  create(name: string, config: z.output<Schema>, tools: SinkTools): Sink
}

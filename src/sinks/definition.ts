import type * as z from 'zod'
import type { Sink } from './sink.ts'
import type { SinkTools } from './tools.ts'

/** A type of sink, exported by its folder: the schema of its config, and how to create a sink from one. */
export interface SinkDefinition<Schema extends z.ZodType> {
  readonly schema: Schema
  /** Throws a UserError over a file (CA, certificate, key) that cannot be read. */
  create(name: string, config: z.output<Schema>, tools: SinkTools): Sink
}

import type * as z from 'zod'
import type { Display } from '../alert/text/display.ts'
import { version } from '../telemetry/version.ts'
import type { Drawer } from './chart/drawer.ts'
import * as kinds from './definitions.ts'
import type { Sink } from './sink.ts'
import type { SinkConfig, SinkType } from './sink-config.ts'
import type { SinkTools } from './tools.ts'
import { createGuard } from './transport/guard.ts'
import type { Resolve } from './transport/lookup.ts'

export type { SinkConfig, SinkType } from './sink-config.ts'

/** A type of sink, exported by its folder: the schema of its config, and how to create a sink from one. */
interface SinkDefinition<Schema extends z.ZodType> {
  readonly schema: Schema
  /** Throws a UserError over a file (CA, certificate, key) that cannot be read. */
  create(name: string, config: z.output<Schema>, tools: SinkTools): Sink
}

/** What all sinks of a config share. */
export interface SharedTools {
  readonly display: Display
  /** How names become addresses; the system's way unless a test says otherwise. */
  readonly resolve?: Resolve
  /** See SinkTools. */
  readonly traces?: boolean
  /** Draws the charts of messages; the caller closes it. */
  readonly drawer?: Pick<Drawer, 'draw'> | undefined
}

/** Throws a UserError over a file (CA, certificate, key) that cannot be read. */
export function createSink(name: string, config: SinkConfig, shared: SharedTools): Sink {
  const kind = definitionOf[config.type]
  return kind.create(name, config, {
    display: shared.display,
    userAgent: `alert-bridge/${version}`,
    traces: shared.traces ?? false,
    ...(shared.drawer === undefined ? {} : { drawer: shared.drawer }),
    guard: (allowed) => createGuard(allowed, shared.resolve),
  })
}

/** A config was made by the schema of the type that it names, which the compiler cannot follow. */
const definitionOf = { ...kinds } as unknown as Readonly<
  Record<SinkType, SinkDefinition<z.ZodType<SinkConfig>>>
>

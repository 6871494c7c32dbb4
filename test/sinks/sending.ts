import type { Outcome } from '../../src/sinks/outcome.ts'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { englishDisplay, persian } from './samples.ts'

/** One alert by a sink of such a config, to its first target where it has several; the sink is closed after it. */
export async function sendOnce(fields: Readonly<Record<string, unknown>>): Promise<Outcome> {
  const sink = createSink('test', sinkConfigSchema.parse(fields), { display: englishDisplay })
  try {
    const [target] = sink.targets
    const attempt = { number: 1, nowMs: Date.now(), signal: new AbortController().signal }
    return await sink.send(persian, { ...attempt, ...(target === undefined ? {} : { target }) })
  } finally {
    await sink.close()
  }
}

import * as z from 'zod'
import * as kinds from './definitions.ts'

/** The config of any sink, made of the schemas of all types. */
type Schema = (typeof kinds)[SinkType]['schema']

export type SinkType = keyof typeof kinds
export type SinkConfig = z.output<Schema>

export const sinkTypes = Object.keys(kinds) as readonly SinkType[]

export const sinkConfigSchema = z.discriminatedUnion(
  'type',
  Object.values(kinds).map(({ schema }) => schema) as [Schema, ...Schema[]],
)

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that are not undefined: for optional properties, which may be absent but not undefined. */
export function given<T extends object>(fields: T): Given<T> {
  const present: Given<T> = {}
  for (const name in fields) if (fields[name] !== undefined) present[name] = fields[name] as never
  return present
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** The fields that are not undefined: for optional properties, which may be absent but not undefined. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>
}

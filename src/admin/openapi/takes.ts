import type * as z from 'zod'

/** A schema that takes every `T`, and names all its fields: what is missing is a mistake of the types. */
export function takes<T>() {
  return <S extends z.ZodType>(schema: Loose<T> extends z.output<S> ? Names<T, S> : never): S => schema
}

type Names<T, S extends z.ZodType> = [Exclude<keyof T, keyof z.output<S>>] extends [never] ? S : never

type Loose<T> = T extends readonly (infer E)[]
  ? Loose<E>[]
  : T extends object
    ? { -readonly [K in keyof T]: Loose<T[K]> }
    : T

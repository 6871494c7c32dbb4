import { JsonNumber } from './json-number.ts'

/** Reads JSON from outside, of which nothing is known. */

/** The value in a text; undefined where the text is no JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An object or a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** An object that is no list. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/** None, where the value is no object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

/** A field that the value has itself: not `constructor`, which every object inherits. */
export function property(value: unknown, key: PropertyKey): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
}

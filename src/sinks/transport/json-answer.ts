/**
 * The object in the start of an answer; empty where there is none. What a service says about itself is never trusted to
 * have a shape.
 */
export function jsonAnswer(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/**
 * A page for people, with whatever status: of a login, a proxy or a wrong address. Services that speak JSON send none, so
 * it neither acknowledges an alert nor refuses it.
 */
export function isPage(body: string): boolean {
  return /^\s*(<!--|<!doctype|<html|<head|<body)/i.test(body)
}

/** Seconds as some services put them into the body of a 429, in milliseconds; undefined where that is no pause. */
export function secondsIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
    ? Math.ceil(value * 1_000)
    : undefined
}

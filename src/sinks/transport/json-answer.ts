import { fieldsOf, readJson } from '../../alert/json/json.ts'

/**
 * The JSON object in the start of an answer; empty where there is none. Its fields are unknown: a service may send
 * anything.
 */
export function jsonAnswer(body: string): Readonly<Record<string, unknown>> {
  return fieldsOf(readJson(body))
}

/**
 * Whether it is an HTML page: of a login, a proxy or a wrong address, with any status. Services with a JSON API send
 * none, so a page neither acknowledges an alert nor refuses it.
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

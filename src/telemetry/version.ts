import { readFileSync } from 'node:fs'

/** The version of this build, as written in package.json at the root of the package (the same place from src/ and dist/). */
export const version = readVersion()

/** Every answer of the HTTP server has the version in this header, so that clients can check which version answers. */
export const versionHeader = 'alert-bridge-version'

/** And in this one, the zone in which people of this bridge read times (`display.timeZone`). */
export const timeZoneHeader = 'alert-bridge-time-zone'

/** Requests may have the admin token in this one. */
export const tokenHeader = 'alert-bridge-token'

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  if (typeof manifest !== 'object' || manifest === null || !('version' in manifest)) return '0.0.0'
  return String(manifest.version)
}

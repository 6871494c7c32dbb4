import { readFileSync } from 'node:fs'

/** The version of this build, as package.json at the root of the package says (the same place from src/ and dist/). */
export const version = readVersion()

/** Every answer of the HTTP server carries the version in this header, so that its clients know whom they talk to. */
export const versionHeader = 'alert-bridge-version'

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  if (typeof manifest !== 'object' || manifest === null || !('version' in manifest)) return '0.0.0'
  return String(manifest.version)
}

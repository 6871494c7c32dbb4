import { version, versionHeader } from '../telemetry/version.ts'

/** What every answer carries; the page replaces the content security policy with one that lets its own parts in. */
export const safeHeaders = {
  [versionHeader]: version,
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

import { version, versionHeader } from '../../telemetry/version.ts'

/** The headers of every answer. The page replaces the content security policy by one that allows its own parts. */
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

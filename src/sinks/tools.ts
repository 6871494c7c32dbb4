import type { Display } from '../alert/display.ts'
import type { AddressGuard } from './transport/guard.ts'

/** What every sink is given beside its config. */
export interface SinkTools {
  readonly display: Display
  readonly userAgent: string
  guard(allowPrivateNetworks: boolean | readonly string[]): AddressGuard
}

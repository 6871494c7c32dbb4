import type { Display } from '../alert/text/display.ts'
import type { Drawer } from './chart/drawer.ts'
import type { AddressGuard } from './transport/guard.ts'

/** What every sink is given beside its config. */
export interface SinkTools {
  readonly display: Display
  readonly userAgent: string
  /** Requests of `webhook` and `http` say which trace and span they belong to. */
  readonly traces?: boolean
  /** Without one, messages have no pictures. */
  readonly drawer?: Pick<Drawer, 'draw'>
  guard(allowPrivateNetworks: boolean | readonly string[]): AddressGuard
}

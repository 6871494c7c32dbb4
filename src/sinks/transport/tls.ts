import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { errorCode, UserError } from '../../lib/errors.ts'
import { readSmallFile } from '../../lib/small-file.ts'
import { withoutBrackets } from './guard.ts'

/** Paths of PEM files. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly serverName?: string | undefined
}

export interface TlsSettings {
  readonly rejectUnauthorized: true
  readonly minVersion: 'TLSv1.2'
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
  readonly servername?: string
  readonly checkServerIdentity?: typeof checkServerIdentity
}

/** TLS as sinks want it: verified whatever the environment says, 1.2 or newer. Throws a UserError over a bad file. */
export function tlsOptions(files: TlsFiles | undefined): TlsSettings {
  return {
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(files?.ca === undefined ? {} : { ca: readPem(files.ca) }),
    ...(files?.cert === undefined ? {} : { cert: readPem(files.cert) }),
    ...(files?.key === undefined ? {} : { key: readPem(files.key) }),
    ...(files?.serverName === undefined ? {} : nameToCheck(files.serverName)),
  }
}

/** An address is no name that a client may ask for, which Node.js 26 refuses; a certificate can be for it all the same. */
function nameToCheck(serverName: string): Pick<TlsSettings, 'servername' | 'checkServerIdentity'> {
  const address = withoutBrackets(serverName)
  if (isIP(address) === 0) return { servername: serverName }
  return {
    checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
      checkServerIdentity(address, certificate),
  }
}

const pemBytesMax = 1_048_576

function readPem(path: string): Buffer {
  try {
    return Buffer.from(readSmallFile(path, pemBytesMax))
  } catch (error) {
    throw new UserError(`cannot read ${path} (${errorCode(error) ?? 'unknown error'})`)
  }
}

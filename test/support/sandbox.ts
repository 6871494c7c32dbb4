import { createFeedClient, type FeedClient, type FeedClientOptions } from '../../src/feed/client.ts'
import { Secret } from '../../src/lib/secret.ts'
import { createSandbox, type Sandbox, type SandboxOptions, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { onTestFinished } from './finished.ts'

export type StartedSandbox = Sandbox & { readonly url: string; readonly controlUrl: string | undefined }

/** A running sandbox on a free port, stopped when the test ends. To be called inside a test or its hooks. */
export async function startSandbox(options: SandboxOptions = {}): Promise<StartedSandbox> {
  const sandbox = createSandbox(options)
  const { url, controlUrl } = await sandbox.start()
  onTestFinished(() => sandbox.stop())
  return Object.assign(sandbox, { url, controlUrl })
}

/** A client of the sandbox, closed when the test ends. */
export function connect(
  sandbox: { readonly url: string },
  options: Partial<FeedClientOptions> = {},
): FeedClient {
  const client = createFeedClient({
    source: 'main',
    baseUrl: sandbox.url,
    token: new Secret(sandboxToken),
    ...options,
  })
  onTestFinished(() => client.close())
  return client
}

import { Command } from 'commander'
import { vi } from 'vitest'
import { runCli } from '../../src/cli/cli.ts'

interface Output {
  readonly out: string
  readonly err: string
}

interface Printed extends Output {
  readonly exitCode: number
  /** What the command threw; the command line prints it as one sentence. */
  readonly thrown: unknown
}

/**
 * Runs one command line as the program does, in this process: a program of its own takes a second to start. `env` is added
 * to the environment meanwhile. One at a time, because output and environment belong to the process.
 */
export async function cli(
  line: readonly string[],
  env: Record<string, string> = {},
): Promise<Output & { readonly code: number }> {
  const before = process.exitCode
  const environment = process.env
  process.env = { ...environment, ...env }
  process.exitCode = undefined
  try {
    const { output, result } = await catching(() => runCli(['node', 'alert-bridge', ...line]))
    return { code: result, ...output }
  } finally {
    process.exitCode = before
    process.env = environment
  }
}

/** Runs one command, without what the command line makes of its end. */
export async function run(command: Command, ...args: string[]): Promise<Printed> {
  const before = process.exitCode
  process.exitCode = 0
  const program = new Command('alert-bridge').exitOverride().addCommand(command.exitOverride())
  try {
    const { output, result } = await catching(() =>
      program.parseAsync([command.name(), ...args], { from: 'user' }).then(
        () => undefined,
        (thrown: unknown) => ({ thrown }),
      ),
    )
    return { ...output, exitCode: Number(process.exitCode), thrown: result?.thrown }
  } finally {
    process.exitCode = before
  }
}

async function catching<T>(body: () => Promise<T>): Promise<{ output: Output; result: T }> {
  const output = { out: '', err: '' }
  const into = (stream: 'stdout' | 'stderr', part: 'out' | 'err') =>
    vi.spyOn(process[stream], 'write').mockImplementation((text) => {
      output[part] += text
      return true
    })
  const spies = [into('stdout', 'out'), into('stderr', 'err')]
  try {
    return { result: await body(), output }
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

import { Command } from 'commander'
import { vi } from 'vitest'

export interface Printed {
  readonly out: string
  readonly err: string
  readonly exitCode: number
  /** What the command threw; the command line prints it as one sentence. */
  readonly thrown: unknown
}

/** Runs one command as the command line would, and catches what it prints. */
export async function run(command: Command, ...args: string[]): Promise<Printed> {
  let [out, err] = ['', '']
  let thrown: unknown
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text
    return true
  })
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text
    return true
  })
  const before = process.exitCode
  process.exitCode = 0
  const program = new Command('alert-bridge').exitOverride().addCommand(command.exitOverride())
  try {
    await program.parseAsync([command.name(), ...args], { from: 'user' })
  } catch (caught) {
    thrown = caught
  } finally {
    stdout.mockRestore()
    stderr.mockRestore()
  }
  const exitCode = Number(process.exitCode)
  process.exitCode = before
  return { out, err, exitCode, thrown }
}

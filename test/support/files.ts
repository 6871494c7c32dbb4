import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Writes each text to a file of a temporary folder, hands over the paths, and removes the folder afterwards. */
export async function withFiles<Name extends string>(
  texts: Readonly<Record<Name, string>>,
  use: (paths: Record<Name, string>) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'alert-bridge-'))
  try {
    const names = Object.keys(texts) as Name[]
    for (const name of names) await writeFile(join(folder, name), texts[name])
    await use(Object.fromEntries(names.map((name) => [name, join(folder, name)])) as Record<Name, string>)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

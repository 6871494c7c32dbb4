/** A Dockerfile as the builder reads it: comments gone, continued lines joined, one entry an instruction. */
interface Instruction {
  readonly word: string
  readonly rest: string
  /** The stage it belongs to, by the name after AS; the lines before the first FROM have none. */
  readonly stage: string | undefined
}

export function parseDockerfile(text: string): Instruction[] {
  const joined = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replace(/\\\n\s*/g, '')
  const instructions: Instruction[] = []
  let stage: string | undefined
  for (const line of joined.split('\n')) {
    const match = /^([A-Z]+)\s+(.*)$/.exec(line.trim())
    if (!match) continue
    const [, word = '', rest = ''] = match
    if (word === 'FROM') stage = / AS (\S+)$/i.exec(rest)?.[1]
    instructions.push({ word, rest, stage })
  }
  return instructions
}

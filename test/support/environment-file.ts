/**
 * The variables of a file as systemd's EnvironmentFile reads it: not as a shell does. Only the beginning of a value is quoted,
 * or what follows a quoted part at once; after anything else a quote is a sign like others. Within double quotes a
 * backslash is left out before `"`, `\`, a backtick and `$` only.
 */
export function asSystemdReads(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => /^\w+=/.test(line))
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return [line.slice(0, at), unquoted(line.slice(at + 1))]
    }),
  )
}

function unquoted(written: string): string {
  let rest = written
  let value = ''
  for (;;) {
    const [whole, single, double] = /^\s*(?:'([^']*)'|"((?:[^"\\]|\\.)*)")/.exec(rest) ?? []
    if (whole === undefined) break
    value += single ?? (double ?? '').replaceAll(/\\(["\\`$])/g, '$1')
    rest = rest.slice(whole.length)
  }
  return value + rest.trim().replaceAll(/\\(.)/g, '$1')
}

/**
 * `${VAR}` and `${VAR:-default}` in one scalar of the config; `$$` is a dollar sign. Pure. It works on values that the
 * YAML parser has already separated, so the content of a variable cannot become YAML.
 */
export type Env = Readonly<Record<string, string | undefined>>

interface Filled {
  readonly text: string
  /** The variables that the text names; empty when it names none. */
  readonly variables: readonly string[]
  /** The text was nothing but variables, so all of it comes from the environment. */
  readonly whole: boolean
  /** What could not be filled, a sentence each; `text` must not be used then. */
  readonly problems: readonly FillProblem[]
}

interface FillProblem {
  readonly message: string
  readonly remedy: string
}

export function fillVariables(text: string, env: Env): Filled {
  const variables: string[] = []
  const problems: FillProblem[] = []
  const filled = text.replace(/\$\$|\$\{([^}]*)(\}?)/g, (token, inner: string | undefined, end: string) => {
    if (inner === undefined) return '$'
    const value = end === '' ? malformed(token) : valueFor(inner, env)
    if (typeof value === 'string') {
      variables.push(nameIn(inner))
      return value
    }
    problems.push(value)
    return token
  })
  const whole = variables.length > 0 && text.trim().replace(/\$\{[^}]*\}?/g, '') === ''
  return { text: filled, variables, whole, problems }
}

/** Whether a variable of this name usually contains a secret. */
export function soundsSecret(variable: string): boolean {
  return /token|secret|pass|key|cred|auth|url|dsn|smtp/i.test(variable)
}

function valueFor(inner: string, env: Env): string | FillProblem {
  const match = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/.exec(inner)
  const name = match?.[1]
  if (name === undefined) return malformed(`\${${inner}}`)
  const fallback = match?.[2]
  if (fallback?.includes('${')) return malformed(`\${${name}:-…}`)
  // `hasOwn`, because every object inherits a `constructor`.
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  // As in a shell, the default after `:-` is also used when the variable is empty.
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
  if (value !== undefined) return value
  return {
    message: `the environment variable ${name} is not set`,
    remedy: `set it, or give a default: \${${name}:-…}`,
  }
}

function malformed(token: string): FillProblem {
  // What follows the name may be a secret: `${TOKEN-secret}`, or a bracket that is missing.
  const name = /^\$\{([A-Za-z_]\w*)(?=[:=?+-])/.exec(token)?.[1]
  const isPlain = /^\$\{([A-Za-z_]\w*(:-…)?)?\}?$/.test(token)
  const shown = isPlain ? token : `\${${name ?? ''}…}`
  return {
    message: `${shown} is no variable`,
    remedy: `write \${NAME} or \${NAME:-default}, without one in the other; $$ is a dollar sign`,
  }
}

function nameIn(inner: string): string {
  return inner.split(':')[0] ?? inner
}

import { stringify } from 'yaml'
import type { Entry, Part } from './part.ts'

/** The two files that `init` writes. */

export function configText(source: Part, sinks: readonly Part[]): string {
  const names = sinks.map(({ name }) => name).join(', ')
  return `# Written by \`alert-bridge init\`. config/example.yaml has every key, with its default. \${NAME} is filled from the
# environment; every secret can come from a file instead: tokenFile, urlFile, secretFile …
redis:
  url: \${REDIS_URL:-embedded}   # embedded starts a redis-server of its own, with its data in ./data

http:
  adminToken: \${ADMIN_TOKEN:-}  # without one, everything that changes something is off

sources:
${partText(source)}

sinks:
${sinks.map(partText).join('\n')}

routes:                         # every route that matches applies; an alert goes once to each sink it reaches
  - sinks: [${names}]  # no match: everything
`
}

/** For a shell (`set -a; . FILE`), systemd's EnvironmentFile and compose's env_file. */
export function environmentText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}\n`)
    .join('')
}

/** Within single quotes all is literal. A value with a quote takes double ones: all three read them alike, but `'\''` is two quotes to systemd. */
function quoted(value: string): string {
  return value.includes("'") ? `"${value.replaceAll(/["\\`$]/g, '\\$&')}"` : `'${value}'`
}

function partText({ name, entries }: Part): string {
  return [`  ${name}:`, ...entries.map((entry) => `    ${entry.key}: ${yamlOf(entry)}`)].join('\n')
}

function yamlOf(entry: Entry): string {
  if ('variable' in entry) return `\${${entry.variable}}`
  const text = stringify(entry.value, { collectionStyle: 'flow', blockQuote: false, lineWidth: 0 })
  // A dollar sign before a brace would be read as a variable.
  return text.trimEnd().replaceAll('$', '$$$$')
}

import { type Document, visit, type YAMLError } from 'yaml'

/**
 * Our own text for each code of a syntax error: the parser's messages quote the file, and the quote may be a secret.
 */
export function describeYamlError(error: YAMLError): { message: string; remedy?: string } {
  const [message, remedy] = words[error.code] ?? ['this is no YAML']
  return remedy === undefined ? { message } : { message, remedy }
}

/** Where the mistake begins. The parser reports a quote that is never closed only at the end of the file. */
export function startOf(error: YAMLError, document: Document): number {
  let start = error.pos[0]
  if (error.code !== 'MISSING_CHAR') return start
  visit(document, {
    Scalar(_, { type, range }) {
      const holds = range && range[0] < error.pos[0] && range[1] >= error.pos[0]
      if (holds && type?.startsWith('QUOTE')) start = range[0]
    },
  })
  return start
}

const words: Readonly<Partial<Record<YAMLError['code'], readonly [string, string?]>>> = {
  TAB_AS_INDENT: ['a tab cannot indent in YAML', 'use spaces'],
  BAD_INDENT: ['the indentation fits nothing above it'],
  MISSING_CHAR: [
    'a character is missing: a closing quote, bracket or brace, a comma, or the space after a colon',
  ],
  BAD_SCALAR_START: ['a value cannot start with this character', 'put it in quotes'],
  BAD_DQ_ESCAPE: ['this escape is unknown in double quotes', 'use single quotes, or \\\\ for a backslash'],
  BAD_ALIAS: ['an alias or anchor without a valid name', 'put a value that starts with * or & in quotes'],
  MULTIPLE_DOCS: ['the file holds more than one document', 'remove the line ---'],
  MULTILINE_IMPLICIT_KEY: ['a key must be on one line', 'is the space after a colon missing?'],
  BLOCK_AS_IMPLICIT_KEY: ['a second key on one line', 'put a value with a colon in quotes'],
  UNEXPECTED_TOKEN: [
    'this does not belong here',
    `is it a bracket too many? within { } write "\${VAR}" in quotes`,
  ],
  NON_STRING_KEY: ['a key must be text'],
  TAG_RESOLVE_FAILED: ['this tag (!) is unknown', 'put a value that starts with ! in quotes'],
  RESOURCE_EXHAUSTION: ['the file is nested too deep'],
}

/** Only the part of a key that is surely a key: the text after a colon without a space may be a secret. */
export function shownKey(key: string): string {
  return /^[\w.-]{1,60}/.exec(key)?.[0] ?? '…'
}

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { formatMistake } from '../../src/config/mistakes/mistake.ts'
import { testFolder } from '../support/process.ts'
import { configText } from './config-text.ts'

/** A token travels in a header, and one that no header carries is refused before it is of no use for days. */

const bad = [
  'CANARY two words',
  'CANARY-tokén',
  'CANARY-رمز',
  'CANARY\u0000',
  'CANA\nRY',
  ' CANARY',
  'CANARY\t',
  '\ufeff\ufeffCANARY',
]
const good = ['abc', 'YWJj+/=', "!#$%&'*+-.^_`|~", 'tk_0123456789']
const quoted = (text: string) => JSON.stringify(text)

function mistakes(text: string, folder = '/'): string[] {
  const loaded = parseConfig(text, { env: {}, folder })
  return loaded.ok ? [] : loaded.mistakes.map((mistake) => formatMistake('f', mistake))
}

const source = (token: string) =>
  `{ main: { baseUrl: "https://api.example.com", ${token}, budget: { unitsPerDay: 2000 } } }`

describe('a token of the API or of the operators', () => {
  it.each(bad)('is refused when no header carries it: %j', (token) => {
    for (const text of [
      configText({ sources: source(`token: ${quoted(token)}`) }),
      configText({ http: `{ adminToken: ${quoted(token)} }` }),
    ]) {
      const told = mistakes(text)
      expect(told).toHaveLength(1)
      expect(told[0]).toMatch(/(token|adminToken): .*expected a token: letters, digits and signs of ASCII/)
      expect(told[0]).not.toContain('CANA')
    }
  })

  it.each(bad)('is refused in a file too, by the name of the file: %j', (token) => {
    const folder = testFolder()
    mkdirSync(join(folder, 'secrets'))
    writeFileSync(join(folder, 'secrets/token'), `${token}\n`)
    for (const text of [
      configText({ sources: source('tokenFile: secrets/token') }),
      configText({ http: '{ adminTokenFile: secrets/token }' }),
    ]) {
      const told = mistakes(text, folder)
      expect(told).toHaveLength(1)
      expect(told[0]).toMatch(/oken(File)?: the content of secrets\/token is not valid: expected a token/)
      expect(told[0]).not.toContain('CANA')
    }
  })

  it.each(good)('is taken otherwise, in a file with whatever an editor left there: %j', (token) => {
    const folder = testFolder()
    writeFileSync(join(folder, 'token'), `\ufeff${token}\r\n\n`)
    const text = configText({
      sources: source(`token: ${quoted(token)}`),
      http: '{ adminTokenFile: token }',
    })
    expect(mistakes(text, folder)).toEqual([])
  })

  it('stands in a file that can be read again and again', () => {
    expect(mistakes(configText({ http: '{ adminTokenFile: /dev/zero }' }))).toEqual([
      expect.stringMatching(/adminTokenFile: this is no plain file$/),
    ])
  })
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'

const folder = mkdtempSync(join(tmpdir(), 'secret-'))
afterEach(() => rmSync(join(folder, 'token'), { force: true }))

describe('a secret', () => {
  it('prints itself nowhere', () => {
    const secret = new Secret('canary')
    const printed = [
      `${secret}`,
      JSON.stringify({ secret }),
      inspect({ secret }, { showHidden: true }),
      String(secret),
    ]
    expect(printed.join()).not.toContain('canary')
    expect(secret.reveal()).toBe('canary')
  })

  it('in a file is read at every use, without its last newline', () => {
    const path = join(folder, 'token')
    writeFileSync(path, 'first\n')
    const secret = Secret.fromFile(path)
    expect(secret.reveal()).toBe('first')
    writeFileSync(path, 'second\r\n')
    expect(secret.reveal()).toBe('second')
  })

  it.each(['\ufefftoken', 'token\n\n', 'token\r\n\r\n', '\ufefftoken\n\n\n'])(
    'in a file is read without what editors leave there: %j',
    (text) => {
      const path = join(folder, 'token')
      writeFileSync(path, text)
      expect(Secret.fromFile(path).reveal()).toBe('token')
    },
  )

  it.each(['to\nken', ' token ', 'to\u0000ken', 'to\ufeffken'])(
    'in a file is else what stands there: %j',
    (text) => {
      const path = join(folder, 'token')
      writeFileSync(path, text)
      expect(Secret.fromFile(path).reveal()).toBe(text)
    },
  )

  it('in a file that is gone throws with the code of the system', () => {
    expect(() => Secret.fromFile(join(folder, 'none')).reveal()).toThrow(/ENOENT/)
  })
})

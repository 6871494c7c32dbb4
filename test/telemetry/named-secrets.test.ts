import { expect, test } from 'vitest'
import { namedSecretsIn, withoutNamedSecrets } from '../../src/telemetry/named-secrets.ts'

test.each([
  ['{ "password": "rivercanary", "to": "{{ symbol }}" }', ['rivercanary']],
  ["{ 'API-Key' : 'two canaries/here' }", ['two canaries/here']],
  ['user=desk&userToken=river=canary&text={{ headline }}', ['river=canary']],
  ['<Secret>rivercanary</Secret>', ['rivercanary']],
  ['pass: rivercanary', ['rivercanary']],
  ['login=desk&psw=rivercanary', ['rivercanary']],
  ['{ "password": "river{!canary", "to": "{{ symbol }}" }', ['river{!canary']],
  [String.raw`{ "password": "ri\"ver\\canary" }`, [String.raw`ri\"ver\\canary`]],
  ['<m:password xsi:type="xsd:string">ri"ver{canary</m:password>', ['ri"ver{canary']],
  ['<password><![CDATA[ri<v]er&canary]]></password>', ['ri<v]er&canary']],
  ['{ "Authorization": "Bearer rivercanary" }', ['Bearer rivercanary']],
  ['{ "key": "{% if a %}rivercanary{% endif %}", "token": "{{ id }}", "n": { "key": {"a": "b"} } }', []],
  ['<key>{{ id }}</key><token> </token><pass/>', []],
  ['{ "key": "{{ id }}", "dedup_key": "row-{{ id }}", "auth": true, "author": "rivercanary" }', []],
  ['the key is: keyboard', []],
])('of %s they are %j', (text, secrets) => {
  expect(namedSecretsIn(text)).toEqual(secrets)
  expect(withoutNamedSecrets(text)).toBe(
    secrets.reduce((left, secret) => left.replace(secret, '[redacted]'), text),
  )
})

test('are found soon in a text of names alone, which may be as long as a template', () => {
  const before = process.cpuUsage()
  for (const piece of ['key=', 'key="', 'key: ', 'key    ', 'key>', 'key="\\'])
    expect(namedSecretsIn(`${piece.repeat(65_000 / piece.length)}{{ id }}`)).toBeInstanceOf(Array)
  expect(process.cpuUsage(before).user).toBeLessThan(2_000_000)
})

import { expect, test } from 'vitest'
import { classifyFault, SinkError } from '../../src/sinks/transport/fault.ts'

function coded(code: string, message = 'it went wrong', cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code })
}

test.each([
  ['ENOTFOUND', 'dns'],
  ['EAI_AGAIN', 'dns'],
  ['ECONNREFUSED', 'connect'],
  ['ENETUNREACH', 'connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
  ['ETIMEDOUT', 'timeout'],
  ['CERT_HAS_EXPIRED', 'tls'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
  ['EPROTO', 'tls'],
  ['ECONNRESET', 'connection_lost'],
  ['EPIPE', 'connection_lost'],
  ['UND_ERR_SOCKET', 'connection_lost'],
  ['HPE_INVALID_CONSTANT', 'bad_answer'],
  ['UND_ERR_HEADERS_OVERFLOW', 'bad_answer'],
  ['EPROTOCOL', 'bad_answer'],
  ['A_CODE_OF_TOMORROW', 'connection_lost'],
])('the code %s means %s', (code, fault) => {
  expect(classifyFault(coded(code))).toEqual({ fault, text: 'it went wrong' })
})

test('the innermost error that is known decides', () => {
  const wrapped = coded('UND_ERR_SOCKET', 'outer', coded('ENOTFOUND', 'no such name'))
  expect(classifyFault(wrapped)).toEqual({ fault: 'dns', text: 'no such name' })
  const addresses = new AggregateError([coded('ECONNREFUSED', 'first'), coded('ECONNREFUSED', 'second')], '')
  expect(classifyFault(Object.assign(addresses, { code: 'ECONNREFUSED' }))).toEqual({
    fault: 'connect',
    text: 'second',
  })
})

test('the code that nodemailer put another over still counts', () => {
  const error = Object.assign(coded('ESOCKET'), { originalCode: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  expect(classifyFault(error).fault).toBe('tls')
})

test('a reset within the handshake is a matter of TLS', () => {
  const message = 'Client network socket disconnected before secure TLS connection was established'
  expect(classifyFault(coded('ECONNRESET', message)).fault).toBe('tls')
})

test("a sink's own fault is found however deep it lies", () => {
  const error = coded('UND_ERR_SOCKET', 'outer', new SinkError('blocked_address', 'refused 10.0.0.1'))
  expect(classifyFault(error)).toEqual({ fault: 'blocked_address', text: 'refused 10.0.0.1' })
})

test('whatever is thrown, and however it points at itself, has a class', () => {
  expect(classifyFault('a text')).toEqual({ fault: 'connection_lost', text: 'a text' })
  expect(classifyFault(undefined).fault).toBe('connection_lost')
  const loop = new Error('round')
  loop.cause = loop
  expect(classifyFault(loop).fault).toBe('connection_lost')
})

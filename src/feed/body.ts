import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { cut, oneLine } from '../alert/text.ts'
import { errorCode } from '../lib/errors.ts'
import { FeedError } from './errors.ts'

/**
 * Reads the body of one answer as JSON, and no more than `bytesMax` of it: the decoded bytes are counted while they arrive,
 * so neither an endless body nor a gzip bomb fills the memory. gzip is the only encoding that is requested and accepted.
 */
export async function readJson(
  body: Readable,
  headers: { readonly contentType: string | undefined; readonly contentEncoding: string | undefined },
  bytesMax: number,
  parse: (text: string) => unknown = JSON.parse,
): Promise<unknown> {
  try {
    return parsed(await readText(body, headers, bytesMax), parse)
  } catch (thrown) {
    // A body that is not read keeps its connection busy.
    if (!body.destroyed) body.on('error', () => {}).destroy()
    throw fromGunzip(thrown)
  }
}

async function readText(
  body: Readable,
  { contentType, contentEncoding = 'identity' }: Parameters<typeof readJson>[1],
  bytesMax: number,
): Promise<string> {
  if (contentType !== undefined && !/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(contentType))
    throw new FeedError('not_json', `the API answered with ${cut(oneLine(contentType), 60)} instead of JSON`)
  const chunks: Buffer[] = []
  let bytes = 0
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      bytes += chunk.length
      if (bytes > bytesMax)
        throw new FeedError('too_large', `the API's answer is longer than ${bytesMax} bytes`)
      chunks.push(chunk)
    }
  }
  const encoding = contentEncoding.trim().toLowerCase()
  if (encoding === 'gzip' || encoding === 'x-gzip') await pipeline(body, createGunzip(), collect)
  else if (encoding === 'identity' || encoding === '') await pipeline(body, collect)
  else throw new FeedError('not_json', 'the API answered in a content encoding that was not asked for')
  return new TextDecoder().decode(Buffer.concat(chunks))
}

function parsed(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch (thrown) {
    if (thrown instanceof FeedError) throw thrown
    // The parser's own message quotes the body.
    throw new FeedError('not_json', 'the API answered with something that is not JSON')
  }
}

function fromGunzip(thrown: unknown): unknown {
  const code = errorCode(thrown)
  if (code === 'Z_BUF_ERROR') return new FeedError('connection_lost', "the API's answer ended early")
  if (code?.startsWith('Z_'))
    return new FeedError('not_json', "the API's answer is not the gzip it claims to be")
  return thrown
}

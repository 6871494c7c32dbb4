import PostalMime from 'postal-mime'
import { describe, expect, it, vi } from 'vitest'
import { createSink } from '../../src/sinks/registry.ts'
import type { Attempt } from '../../src/sinks/sink.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { onTestFinished } from '../support/finished.ts'
import { type SmtpScript, startSmtpReceiver } from '../support/smtp-receiver.ts'
import {
  type ReceivedRequest,
  type ReceiverAnswer,
  startWebhookReceiver,
} from '../support/webhook-receiver.ts'
import { contextOf, whole } from './contexts.ts'
import { alertOf, persian, persianDisplay } from './samples.ts'

/** The chart in messages that can carry a picture; where there is none, the message is what it was. */
const png = Buffer.from('PNG\r\n--no-boundary--\r\n')
const attempt = { number: 1, signal: new AbortController().signal, nowMs: Date.now(), context: whole }

type Draw = (svg: string) => Promise<Uint8Array | undefined>
const draws: Draw = async () => png
const drawsNothing: Draw = async () => undefined

function sinkOf(fields: Record<string, unknown>, draw: Draw) {
  const config = sinkConfigSchema.parse({ allowPrivateNetworks: true, ...fields })
  const sink = createSink('test', config, { display: persianDisplay, drawer: { draw } })
  onTestFinished(() => sink.close())
  return sink
}

/** Answers in turn, then as a receiver that takes everything. */
async function receive(ok: string, answers: readonly ReceiverAnswer[] = []) {
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.stop())
  const left = [...answers]
  receiver.answerWith(() => left.shift() ?? { status: 200, body: ok })
  return receiver
}

async function telegram(draw = draws, answers: readonly ReceiverAnswer[] = [], more = {}) {
  const receiver = await receive('{"ok":true}', answers)
  const { origin: baseUrl } = new URL(receiver.url)
  const sink = sinkOf(
    { type: 'telegram', baseUrl, token: `1:${'A'.repeat(35)}`, chatId: -100, threadId: 7, ...more },
    draw,
  )
  return {
    receiver,
    send: (alert = persian, more: Partial<Attempt> = {}) => sink.send(alert, { ...attempt, ...more }),
  }
}

async function discord(draw = draws, answers: readonly ReceiverAnswer[] = []) {
  const receiver = await receive('{"id":"1"}', answers)
  const sink = sinkOf({ type: 'discord', url: receiver.url }, draw)
  return { receiver, send: () => sink.send(persian, attempt) }
}

async function formOf({ body, headers }: ReceivedRequest) {
  const type = { 'content-type': headers['content-type'] ?? '' }
  const form = await new Response(body, { headers: type }).formData()
  const entries = [...form.entries()].map(async ([name, value]) => [
    name,
    typeof value === 'string' ? value : { name: value.name, type: value.type, text: await value.text() },
  ])
  return Object.fromEntries(await Promise.all(entries)) as Record<string, unknown>
}

const paths = ({ requests }: { requests: readonly ReceivedRequest[] }) =>
  requests.map(({ path }) => path.split('/').at(-1))
const refusal = (status: number): ReceiverAnswer => ({
  status,
  body: '{"ok":false,"description":"Bad Request: not enough rights to send photos to the chat"}',
})

/** What a sink lets be drawn. */
function draftsman() {
  const drawn: string[] = []
  const draw: Draw = async (svg) => {
    drawn.push(svg)
    return png
  }
  return { drawn, draw }
}

const groundOf = (svg = '') => /<rect width="100%" height="100%" fill="(#[0-9a-f]{6})"/.exec(svg)?.[1]
const coloursOf = (svg = '') => new Set(svg.match(/(?<=(?:fill|stroke)=")#[0-9a-f]{6}/g))

/** As WCAG defines it: 1 to 21. */
function contrast(one: string, other: string): number {
  const lightness = (colour: string) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
  }
  const [high = 1, low = 1] = [one, other].map(lightness).sort((a, b) => b - a)
  return high / low
}

describe('a Telegram message', () => {
  it('with a chart is a photo, whose caption is the whole text', async () => {
    const { receiver, send } = await telegram()
    expect(await send()).toMatchObject({ kind: 'delivered' })
    const [request] = receiver.requests
    const form = await formOf(request as ReceivedRequest)
    expect(paths(receiver)).toEqual(['sendPhoto'])
    expect(form).toMatchObject({
      ...{ chat_id: '-100', message_thread_id: '7', parse_mode: 'HTML', show_caption_above_media: 'true' },
      photo: { name: 'chart.png', type: 'image/png', text: png.toString() },
    })
    expect(form['caption']).toContain(persian.headline)
    expect(form['caption']).toContain('۵٬۲۳۰ ریال')
    // The picture shows them.
    expect(form['caption']).not.toContain('▁')
  })

  it('too long for a caption, or whose chart is not drawn, is text with the columns', async () => {
    const long = await telegram()
    await long.send(alertOf({ why: 'دلیل '.repeat(190) }))
    const undrawn = await telegram(drawsNothing)
    await undrawn.send()
    for (const { receiver } of [long, undrawn]) {
      expect(paths(receiver)).toEqual(['sendMessage'])
      expect(receiver.requests[0]?.body).toContain('▁')
    }
  })

  it('of which the chat takes no photo goes out as text, in the same attempt; after other faults, in the third', async () => {
    for (const status of [400, 413]) {
      const { receiver, send } = await telegram(draws, [refusal(status)])
      expect(await send()).toMatchObject({ kind: 'delivered' })
      expect(paths(receiver)).toEqual(['sendPhoto', 'sendMessage'])
      // Two requests for each alert may be more than it takes, and a pause that it asks for costs no attempt.
      const limited = await telegram(draws, [refusal(status), refusal(429)])
      expect(await limited.send()).toMatchObject({ kind: 'retry' })
      expect(await limited.send()).toMatchObject({ kind: 'delivered' })
      expect(paths(limited.receiver)).toEqual(['sendPhoto', 'sendMessage', 'sendMessage'])
    }
    for (const [status, kind] of [
      [403, 'dead'],
      [429, 'retry'],
      [500, 'retry'],
    ] as const) {
      const { receiver, send } = await telegram(draws, [refusal(status)])
      expect(await send()).toMatchObject({ kind })
      expect(paths(receiver)).toEqual(['sendPhoto'])
    }
    // A connection that is too slow for pictures would have them time out each time.
    const late = await telegram()
    expect(await late.send(persian, { number: 3 })).toMatchObject({ kind: 'delivered' })
    expect(paths(late.receiver)).toEqual(['sendMessage'])
    const gone = { status: 400, body: '{"ok":false,"description":"Bad Request: chat not found"}' }
    const { send } = await telegram(draws, [gone, gone])
    expect(await send()).toMatchObject({ kind: 'dead', reason: 'gone' })
  })

  it.each<[string, ReceiverAnswer]>([
    ['was answered 429', refusal(429)],
    ['was answered 500', refusal(500)],
    ['lost its connection', { kind: 'reset' }],
    ['was answered by something else', { status: 200, body: '<html>' }],
  ])('whose photo %s is text when it is sent next, and so is the next one', async (_how, answer) => {
    const { receiver, send } = await telegram(draws, [answer])
    expect(await send()).toMatchObject({ kind: 'retry' })
    expect(await send()).toMatchObject({ kind: 'delivered' })
    expect(await send(alertOf({ id: 2 }))).toMatchObject({ kind: 'delivered' })
    expect(paths(receiver)).toEqual(['sendPhoto', 'sendMessage', 'sendMessage'])
  })

  it('whose photo had no answer is text when it is sent next, and so is the next one', async () => {
    const { receiver, send } = await telegram(draws, [], { timeout: '300ms' })
    receiver.answerWith(({ path }) =>
      path.endsWith('/sendPhoto') ? { kind: 'hang' } : { status: 200, body: '{"ok":true}' },
    )
    expect(await send()).toMatchObject({ kind: 'retry' })
    const photos = receiver.requests.length
    expect(photos).toBeLessThanOrEqual(1)
    for (const id of [1, 2])
      await vi.waitFor(
        async () => expect(await send(alertOf({ id }))).toMatchObject({ kind: 'delivered' }),
        10_000,
      )
    expect(new Set(paths(receiver).slice(photos))).toEqual(new Set(['sendMessage']))
  })

  it('without a chart in its context asks for no drawing', async () => {
    let asked = 0
    const { send } = await telegram(async () => {
      asked += 1
      return png
    })
    await send(persian, { context: contextOf({ price: { last: 1 } }) })
    await send(persian, { context: contextOf({ chart: { points: [{ close: 1 }] } }) })
    expect(asked).toBe(0)
  })
})

describe('a Discord message', () => {
  it('with a chart has it in its embed, with a text for those who cannot see it', async () => {
    const { receiver, send } = await discord()
    expect(await send()).toMatchObject({ kind: 'delivered' })
    const form = await formOf(receiver.requests[0] as ReceivedRequest)
    expect(form['files[0]']).toEqual({ name: 'chart.png', type: 'image/png', text: png.toString() })
    expect(JSON.parse(String(form['payload_json']))).toMatchObject({
      embeds: [{ image: { url: 'attachment://chart.png' } }],
      attachments: [
        { id: 0, filename: 'chart.png', description: expect.stringContaining('نمودار قیمت فولاد') },
      ],
      allowed_mentions: { parse: [] },
    })
  })

  it('whose chart is not drawn, or refused, is the embed alone', async () => {
    const undrawn = await discord(drawsNothing)
    const refused = await discord(draws, [{ status: 413, body: '{"message":"too large","code":40005}' }])
    for (const { receiver, send } of [undrawn, refused]) {
      expect(await send()).toMatchObject({ kind: 'delivered' })
      const message = JSON.parse(receiver.requests.at(-1)?.body ?? '') as { embeds: { image?: unknown }[] }
      expect(message).not.toHaveProperty('attachments')
      expect(message.embeds[0]).not.toHaveProperty('image')
    }
  })
})

it.each([
  ['Telegram', telegram, '#ffffff'],
  ['Discord', discord, '#1a1f25'],
] as const)(
  'the chart for %s has its own ground, from which all of it stands out',
  async (_sink, open, own) => {
    const { drawn, draw } = draftsman()
    const { send } = await open(draw)
    await send()
    expect(groundOf(drawn[0])).toBe(own)
    // The lines of the grid are faint on purpose.
    const faint = [...coloursOf(drawn[0])].filter((colour) => colour !== own && contrast(colour, own) < 4.5)
    expect(faint.length).toBeLessThan(2)
  },
)

describe('a mail', () => {
  async function mailWith(draw: Draw, script: SmtpScript = {}, number = 1) {
    const receiver = await startSmtpReceiver()
    onTestFinished(() => receiver.stop())
    receiver.script(script)
    const to = ['desk@example.com']
    const sink = sinkOf({ type: 'email', smtp: receiver.url, from: 'a@example.com', to }, draw)
    expect(await sink.send(persian, { ...attempt, number, target: 'desk@example.com' })).toMatchObject({
      kind: 'delivered',
    })
    return PostalMime.parse(receiver.mails[0]?.raw ?? '')
  }

  it('shows the chart within its page, under 102 KB without it, and its text part says as much in columns', async () => {
    const { html = '', text = '', attachments } = await mailWith(draws)
    expect(attachments).toMatchObject([{ mimeType: 'image/png', disposition: 'inline', related: true }])
    const [, cid] = /<img [^>]*src="cid:([^"]+)" alt="نمودار قیمت فولاد: ۸ جلسه/.exec(html) ?? []
    expect(attachments[0]?.contentId).toBe(`<${cid}>`)
    expect(Buffer.from((attachments[0]?.content ?? '') as ArrayBuffer)).toEqual(png)
    expect(html).not.toContain('▁')
    expect(text).toContain('▁')
    expect(Buffer.byteLength(html)).toBeLessThan(102_000)
  })

  it('has a chart without a ground, whose colours can be seen on light and on dark screens', async () => {
    const { drawn, draw } = draftsman()
    await mailWith(draw)
    expect(drawn).toHaveLength(1)
    expect(groundOf(drawn[0])).toBe(undefined)
    const colours = [...coloursOf(drawn[0])]
    expect(colours.length).toBeGreaterThan(2)
    for (const colour of colours)
      for (const screen of ['#ffffff', '#1a1f25'])
        expect(contrast(colour, screen), `${colour} on ${screen}`).toBeGreaterThan(3)
  })

  it('whose chart was not taken for now has the columns when it is sent next, and so has the next one', async () => {
    const receiver = await startSmtpReceiver()
    onTestFinished(() => receiver.stop())
    const data = (raw: string) =>
      raw.includes('image/png') ? { code: 451, text: '4.3.0 the scanner is busy' } : undefined
    receiver.script({ data })
    const to = ['desk@example.com']
    const sink = sinkOf({ type: 'email', smtp: receiver.url, from: 'a@example.com', to }, draws)
    const send = (id: number) =>
      sink.send(alertOf({ id }), { ...attempt, number: 1, target: 'desk@example.com' })
    expect(await send(1)).toMatchObject({ kind: 'retry' })
    expect(await send(1)).toMatchObject({ kind: 'delivered' })
    expect(await send(2)).toMatchObject({ kind: 'delivered' })
  })

  it('whose chart is not drawn, or refused, has the columns', async () => {
    const data = (raw: string) =>
      raw.includes('image/png') ? { code: 552, text: '5.7.0 attachments are not taken here' } : undefined
    for (const mail of [mailWith(drawsNothing), mailWith(draws, { data }), mailWith(draws, {}, 3)]) {
      const { html = '', attachments } = await mail
      expect(attachments).toEqual([])
      expect(html).toContain('▁')
      expect(html).not.toContain('<img')
    }
  })
})

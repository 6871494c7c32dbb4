import { describe, expect, it } from 'vitest'
import { FeedError } from '../../src/feed/errors.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { LeaseLost } from '../../src/store/source/lease.ts'
import { onTestFinished } from '../support/finished.ts'
import { replaceServer, startRedis, useRedis } from '../support/redis.ts'
import { rigStartMs } from './memory-rig.ts'
import { history, ids, intakeRig, minuteMs } from './rig.ts'

const server = useRedis()

describe('a poll', () => {
  it('costs one unit, with or without news', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, reason: 'caught_up', finished: true })
    for (const count of [1, 37, 99]) {
      feed.add(count, rigStartMs + minuteMs)
      expect(await poll()).toMatchObject({ pages: 1, newAlerts: count, reason: 'caught_up', behind: false })
    }
    expect(queues.ids()).toEqual(ids(251, 137))
    expect(queues.repeats).toBe(0)
    expect(rig.asked.every(({ page, purpose }) => page === 1 && purpose === 'poll')).toBe(true)
  })

  it('tells what it saw', async () => {
    const { rig, feed, poll, metric } = intakeRig(server)
    history(rig, 3)
    await poll()
    rig.nowMs += 2 * minuteMs
    feed.add(2, (index) => rigStartMs + (index + 1) * minuteMs)
    const result = await poll()
    expect(result).toMatchObject({
      ok: true,
      newAlerts: 2,
      duplicates: 3,
      passedOver: 0,
      total: 5,
      stopped: null,
    })
    expect(result.fired).toEqual([
      { firedAtMs: rigStartMs + minuteMs, passedOver: false, ruleIds: ['1'] },
      { firedAtMs: rigStartMs + 2 * minuteMs, passedOver: false, ruleIds: ['1'] },
    ])
    expect(result.lastCompleteMs).toBe(rig.nowMs)
    expect(await metric('alertsSeen')).toBe(2)
    expect(await metric('alertsDuplicate')).toBe(3)
    expect(await metric('lastCompleteWalk')).toBe(rig.nowMs / 1_000)
  })

  it('enqueues oldest first, and marks nothing when a job could not be stored', async () => {
    const { feed, poll, queues, rig } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(3, rigStartMs)
    const enqueue = queues.enqueue.bind(queues)
    queues.enqueue = async (jobs) => {
      await enqueue(jobs.slice(0, 1))
      throw new Error('OOM command not allowed')
    }
    expect(await poll()).toMatchObject({ ok: false, reason: 'queue_failed', newAlerts: 0 })
    queues.enqueue = enqueue
    expect(await poll()).toMatchObject({ ok: true, newAlerts: 3 })
    expect(queues.order).toEqual([1, 2, 3])
    expect(rig.asked).toHaveLength(2)
  })

  it('marks nothing at another Redis than the one that its jobs were stored at: a next master, or one that is back without them', async () => {
    const own = await startRedis({ aof: 'always' })
    onTestFinished(() => own.dispose())
    const { redis, feed, poll, queues, state } = intakeRig(own, { startFrom: 'beginning' })
    feed.add(3, rigStartMs)
    const enqueue = queues.enqueue.bind(queues)
    queues.enqueue = async () => {
      // They are stored, and lost with it.
      queues.enqueue = enqueue
      await replaceServer(own, redis)
      // As the status does, for its counts.
      await state.look([])
    }
    expect(await poll()).toMatchObject({ newAlerts: 0, reason: 'raced' })
    expect(await poll()).toMatchObject({ ok: true, newAlerts: 3 })
    expect(queues.order).toEqual([1, 2, 3])
  })

  it('is handled by the config that is in force once its page was read', async () => {
    const { rig, feed, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(1, rigStartMs)
    const { inForce } = rig.deps
    rig.answer = () => {
      const prepareAssign: typeof inForce.intake.prepareAssign = async () => async (alerts) =>
        alerts.map(() => ({ sinks: [{ sink: 'other', routes: [] }], withheld: [] }))
      Object.assign(inForce, { intake: { ...inForce.intake, prepareAssign } })
      return undefined
    }
    await poll()
    expect([...queues.jobs.values()].map(({ sink }) => sink)).toEqual(['other'])
  })

  it.each([
    ['refused_lease', new LeaseLost('another process has it')],
    ['failed', new FeedError('aborted', 'the bridge is stopping')],
  ] as const)(
    'that is broken off while it compares is %s, and its page is read again',
    async (reason, why) => {
      const { rig, feed, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
      feed.add(3, rigStartMs)
      const { inForce } = rig.deps
      const { intake } = inForce
      const ending = new AbortController()
      const prepareAssign: typeof intake.prepareAssign = async () => async (_alerts, _atMs, signal) => {
        ending.abort(why)
        signal?.throwIfAborted()
        return []
      }
      Object.assign(rig.deps, { ending: ending.signal })
      Object.assign(inForce, { intake: { ...intake, prepareAssign } })
      expect(await poll()).toMatchObject({ ok: false, reason, newAlerts: 0 })
      Object.assign(inForce, { intake })
      expect(await poll()).toMatchObject({ ok: true, newAlerts: 3 })
      expect(queues.order).toEqual([1, 2, 3])
    },
  )

  it('spends no unit while Redis does not answer', async () => {
    const { rig, redis, poll } = intakeRig(server)
    redis.disconnect()
    expect(await poll()).toMatchObject({ ok: false, reason: 'state_failed', pages: 0 })
    expect(rig.asked).toEqual([])
  })

  it.each(['budget', 'minute', 'hold', 'lease'] as const)('says that the %s refused it', async (why) => {
    const { rig, poll } = intakeRig(server)
    rig.answer = () => ({ kind: 'refused', why })
    expect(await poll()).toMatchObject({ ok: false, reason: `refused_${why}`, pages: 0 })
  })

  it('hands over an error of the feed', async () => {
    const { rig, poll } = intakeRig(server)
    const error = new Error('502')
    rig.answer = () => ({ kind: 'failed', error })
    expect(await poll()).toMatchObject({ ok: false, reason: 'failed', pages: 0, error })
  })
})

describe('a catch-up', () => {
  // The table of units: n new rows cost floor(n / 100) + 1, one for each page of news and one for the proof.
  it.each(ids(1, 20))('of %i full pages costs one unit more than pages', async (pages) => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(pages * 100, rigStartMs + minuteMs)
    expect(await poll()).toMatchObject({ pages: pages + 1, newAlerts: pages * 100, finished: true })
    expect(queues.jobs.size).toBe(pages * 100)
    expect(queues.repeats).toBe(0)
  })

  it.each([
    [100, 2],
    [101, 2],
    [199, 2],
    [200, 3],
    [1_950, 20],
  ])('of %i rows costs %i units', async (rows, units) => {
    const { rig, feed, poll } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(rows, rigStartMs + minuteMs)
    expect(await poll()).toMatchObject({ pages: units, newAlerts: rows, finished: true })
  })

  it('that broke off goes on where it was, behind a fresh head', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(1_000, rigStartMs + minuteMs)
    expect(await poll({ pagesMax: 6 })).toMatchObject({ pages: 6, reason: 'page_limit', behind: true })
    feed.add(30, rigStartMs + 2 * minuteMs)
    rig.asked.length = 0
    // Page 1, and then from the page that holds the 630th row on: the five pages between are not paid for again.
    expect(await poll()).toMatchObject({ pages: 6, newAlerts: 430, finished: true })
    expect(rig.asked.map(({ page }) => page)).toEqual([1, 7, 8, 9, 10, 11])
    expect(queues.jobs.size).toBe(1_030)
    expect(queues.repeats).toBe(0)
  })

  it('that broke off keeps its progress though the next head does not reach it', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(1_000, rigStartMs + minuteMs)
    await poll({ pagesMax: 6 })
    feed.add(500, rigStartMs + 2 * minuteMs)
    await poll({ pagesMax: 2 })
    rig.asked.length = 0
    expect(await poll()).toMatchObject({ newAlerts: 700, finished: true })
    expect(rig.asked.map(({ page }) => page)).toEqual([1, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16])
    expect(queues.jobs.size).toBe(1_500)
  })

  it.each([
    [1_000, 6, [1, 2, 3, 4, 5]],
    [9_000, 11, [1, 2]],
  ])('of pages that take %i ms each leaves the head of the feed fresh', async (pageMs, polls, first) => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(1_050, rigStartMs + minuteMs)
    rig.asked.length = 0
    rig.answer = () => {
      rig.nowMs += pageMs
      return undefined
    }
    expect(await poll()).toMatchObject({ reason: 'page_limit', behind: true })
    expect(rig.asked.map(({ page }) => page)).toEqual(first)
    let made = 1
    while ((await poll()).behind) made += 1
    expect(made + 1).toBeLessThanOrEqual(polls)
    expect(queues.jobs.size).toBe(1_050)
    expect(queues.repeats).toBe(0)
  })

  it('of very many pages keeps nothing in the process, and a few bytes of its own in Redis', async () => {
    const { rig, feed, poll, prefix, queues, redis } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(12_000, rigStartMs + minuteMs)
    const results = [await poll()]
    while (results.at(-1)?.behind && results.length < 10) {
      const stretches = await redis.get(sourceKeys(prefix, 'main').stretch)
      expect(stretches?.length).toBeLessThan(100)
      results.push(await poll())
    }
    expect(results.map(({ pages, fired }) => [pages, fired.length])).toEqual([
      [25, 2_500],
      [25, 2_400],
      [25, 2_400],
      [25, 2_400],
      [25, 2_300],
    ])
    expect(queues.jobs.size).toBe(12_000)
    expect(await redis.zcard(sourceKeys(prefix, 'main').uncovered)).toBe(0)
  })

  it('survives its process, and a budget of one unit a poll', async () => {
    const { rig, feed, poll, queues, restart } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(450, rigStartMs + minuteMs)
    // One page beyond the head a poll; the head itself is read again each time.
    for (let polls = 1; polls <= 4; polls += 1) {
      restart()
      expect((await poll({ pagesMax: 2 })).finished).toBe(polls === 4)
    }
    expect(queues.jobs.size).toBe(450)
  })

  it('of which a page fails has enqueued the head, and goes on with the next poll', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(350, rigStartMs + minuteMs)
    rig.answer = (page) => (page === 2 ? { kind: 'failed', error: new Error('500') } : undefined)
    expect(await poll()).toMatchObject({ ok: true, reason: 'failed', behind: true, newAlerts: 100 })
    rig.answer = () => undefined
    expect(await poll()).toMatchObject({ finished: true, newAlerts: 250 })
    expect(queues.ids()).toEqual(ids(251, 350))
  })

  it('loses nothing when rows are deleted between its pages', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(700, rigStartMs + minuteMs)
    let deletions = 3
    rig.answer = (page) => {
      if (page > 2 && deletions-- > 0) feed.rows.splice(40, 5)
      return undefined
    }
    const { finished, pages } = await poll()
    expect(finished).toBe(true)
    // A deletion costs at most the page that it spoilt and the one above.
    expect(pages).toBeLessThanOrEqual(8 + 3 * 2)
    const left = feed.rows.filter(({ id }) => id > 250).map(({ id }) => id)
    expect(queues.ids()).toEqual(expect.arrayContaining(left))
  })

  it('of a feed that was cleared waits for nothing', async () => {
    const { feed, poll } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(900, rigStartMs)
    await poll({ pagesMax: 2 })
    feed.rows = []
    expect(await poll()).toMatchObject({ pages: 1, reason: 'empty_feed', behind: false, finished: true })
    feed.add(3, rigStartMs)
    expect(await poll()).toMatchObject({ newAlerts: 3, reason: 'end_of_feed', behind: false })
  })
})

describe('two pollers at once', () => {
  it('cost units, and no alert is lost or enqueued twice', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(1_500, rigStartMs + minuteMs)
    let finished = false
    for (let rounds = 0; rounds < 10 && !finished; rounds += 1) {
      const results = await Promise.all([poll(), poll(), poll()])
      finished = results.some((result) => result.finished)
    }
    expect(finished).toBe(true)
    expect(queues.ids()).toEqual(ids(251, 1_500))
  })
})

describe('rows', () => {
  it('that cannot be read are quarantined once, and stop nothing', async () => {
    const { feed, poll, queues, quarantine, metric } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(2, rigStartMs)
    feed.rows.unshift(feed.bad())
    feed.add(2, rigStartMs)
    expect(await poll()).toMatchObject({ newAlerts: 4, quarantined: 1 })
    expect(await poll()).toMatchObject({ newAlerts: 0, quarantined: 0 })
    expect(queues.ids()).toEqual([1, 2, 4, 5])
    expect(await quarantine.list(10)).toMatchObject([{ key: 'raw-3', reason: 'id: not a number' }])
    expect(await metric('alertsQuarantined')).toBe(1)
  })

  it('that were quarantined are sent once when the feed shows them in a form that can be read', async () => {
    const { rig, feed, poll, queues, quarantine } = intakeRig(server, { startFrom: 'now' })
    history(rig, 3)
    await poll()
    const [odd] = feed.add(2, rigStartMs + minuteMs)
    if (odd === undefined) throw new Error('no row')
    const whole = { ...odd }
    Object.assign(odd, { firedAt: null })
    expect(await poll()).toMatchObject({ newAlerts: 1, quarantined: 1 })
    expect(await poll()).toMatchObject({ newAlerts: 0, quarantined: 0, duplicates: 5 })
    Object.assign(odd, whole)
    expect(await poll()).toMatchObject({ newAlerts: 1, quarantined: 0, duplicates: 4 })
    expect(await poll()).toMatchObject({ newAlerts: 0, duplicates: 5 })
    expect(queues.order).toEqual([5, 4])
    expect(queues.repeats).toBe(0)
    expect(await quarantine.counts()).toEqual({ quarantined: 0, ever: 1, fellOut: 0 })
  })

  it('that were quarantined and are dropped are not sent, whatever the feed shows later', async () => {
    const { feed, poll, queues, quarantine } = intakeRig(server, { startFrom: 'beginning' })
    const [odd] = feed.add(1, rigStartMs)
    const whole = { ...odd }
    Object.assign(odd ?? {}, { firedAt: null })
    await poll()
    expect(await quarantine.remove(['1'])).toBe(1)
    Object.assign(odd ?? {}, whole)
    expect(await poll()).toMatchObject({ newAlerts: 0 })
    expect(queues.ids()).toEqual([])
  })

  it('that no route names a sink for are counted and not looked at again', async () => {
    const { feed, poll, queues, metric } = intakeRig(server, {
      startFrom: 'beginning',
      route: ({ id }) => (id === 2 ? [] : ['desk', 'mail']),
    })
    feed.add(2, rigStartMs)
    expect(await poll()).toMatchObject({ newAlerts: 2, unrouted: 1 })
    expect([...queues.jobs.keys()]).toEqual([
      'desk/main.1',
      'mail/main.1.a@example.com',
      'mail/main.1.b@example.com',
    ])
    expect(await poll()).toMatchObject({ newAlerts: 0, unrouted: 0 })
    expect(await metric('alertsUnrouted')).toBe(1)
  })

  it('with equal dates and ids in any order are all taken', async () => {
    const { feed, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
    const shuffled = ids(1, 250).toSorted((a, b) => ((a * 7_919) % 251) - ((b * 7_919) % 251))
    feed.rows = shuffled.map((id) => feed.row(rigStartMs, id))
    expect(await poll()).toMatchObject({ newAlerts: 250, pages: 3 })
    feed.rows.unshift(feed.row(rigStartMs, 300), feed.row(rigStartMs, 260))
    await poll()
    expect(queues.ids()).toEqual([...ids(1, 250), 260, 300])
  })
})

describe('late rows', () => {
  it('beneath the head are noticed by counting, and looked for once', async () => {
    const { rig, feed, poll, queues, metric } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 450)
    await poll()
    const late = feed.row(rigStartMs - 150 * minuteMs)
    feed.rows.splice(150, 0, late)
    expect(await poll()).toMatchObject({ pages: 2, newAlerts: 1, feedGap: 0, finished: true })
    expect(queues.ids()).toContain(late.id)
    expect(await metric('feedGap')).toBe(1)
    expect(await poll()).toMatchObject({ pages: 1, feedGap: 0 })
  })

  it('that lie too deep are told and left to the sweep', async () => {
    const { rig, feed, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 950)
    await poll()
    feed.rows.splice(777, 0, feed.row(rigStartMs))
    expect(await poll({ deeperPagesMax: 2 })).toMatchObject({ pages: 3, newAlerts: 0, feedGap: 1 })
    expect(await poll()).toMatchObject({ pages: 1, feedGap: 0 })
    expect(queues.ids()).not.toContain(951)
  })

  it('are none that an older view of the feed left out, and are found beside those', async () => {
    const { rig, feed, poll, queues, metric } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 450)
    await poll()
    feed.add(5, rigStartMs)
    await poll()
    const newest = feed.rows.splice(0, 5)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, feedGap: 0 })
    feed.rows.unshift(...newest)
    feed.add(2, rigStartMs)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 2, feedGap: 0 })
    const older = feed.rows.splice(0, 4)
    await poll()
    const late = feed.row(rigStartMs - 150 * minuteMs)
    feed.rows.splice(150, 0, late)
    feed.rows.unshift(...older)
    expect(await poll()).toMatchObject({ pages: 2, newAlerts: 1 })
    expect(queues.ids()).toContain(late.id)
    expect(await metric('feedGap')).toBe(1)
  })

  it('are not taken for deletions that make room for them', async () => {
    const { rig, feed, poll } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 450)
    await poll()
    feed.rows.splice(400, 20)
    feed.add(5, rigStartMs)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 5, feedGap: 0 })
  })
})

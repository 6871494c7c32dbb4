import { expect, it } from 'vitest'
import { localTimes } from '../../src/cli/output/local-times.ts'

const zone = 'Asia/Tehran'
const until = '2026-11-21T12:00:00.000Z'
const local = '2026-11-21T15:30:00+03:30'

it.each([
  [{ silence: 's1', text: `held back from route a: silenced by s1 until ${until} (until ${until})` }],
  [{ silence: null, text: `held back by route a: muted until ${until}` }],
  [{ state: 'held', reason: `held back by route a: throttled until ${until}` }],
  [{ code: 'sink_paused', text: `Sink hook is paused until ${until}; 3 wait` }],
  [
    {
      nextPollAt: null,
      reason: `another replica polls (vm); its lease ends at ${until} unless it is renewed`,
    },
  ],
  [{ resetsAt: until, note: `the API's day starts anew at ${until}, not when the config says` }],
  [{ action: 'send again', subject: `since ${until}`, comment: `(until ${until})` }],
  [{ polledBy: `vm, process 1, running since ${until}` }],
  [{ silent: [{ id: '1', name: 'a', text: `last evaluated ${until}, was due 2026-11-21T12:00:00Z` }] }],
  [{ notes: [`another replica polls (vm, process 1, running since ${until}); its lease ends at ${until}`] }],
  [
    {
      decisions: [],
      text: `  held routes[0] → hook: muted until ${until}\nas of ${until}, with the silences`,
    },
  ],
])('a sentence of the bridge has its times on the clock of the zone: %j', (answer) => {
  const shown = JSON.stringify(localTimes(answer, zone))
  expect(shown).toContain(local)
  // What an operator wrote stays.
  expect(shown.replace(`(until ${until})`, '')).not.toContain('Z')
})

it('what a receiver or the market wrote stays as it came', () => {
  const theirs = { headline: `Sink hook is paused until ${until}`, comment: `muted until ${until}` }
  const attempt = { outcome: 'retry', text: `is paused until ${until}`, reason: 'server_error' }
  const dead = { state: 'dead', reason: `rejected: is paused until ${until}` }
  for (const each of [theirs, attempt, dead]) expect(localTimes(each, zone)).toEqual(each)
})

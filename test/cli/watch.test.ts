import { execFileSync } from 'node:child_process'
import { expect, it, onTestFinished } from 'vitest'
import { NoAnswerError } from '../../src/cli/client/daemon.ts'
import { watch } from '../../src/cli/client/watch.ts'
import { changedRows } from '../../src/cli/deliveries.ts'
import { rig as admin } from '../admin/rig.ts'
import { ago, row } from '../admin/views.ts'
import { cli } from '../support/cli.ts'
import { startProgram } from '../support/process.ts'
import { until } from '../support/until.ts'

it('what is watched is looked at until the person ends it, also over a time without the bridge', async () => {
  const stop = new AbortController()
  let looks = 0
  await watch(
    async () => {
      looks += 1
      if (looks === 2) throw new NoAnswerError('No bridge answers')
      if (looks === 3) stop.abort()
    },
    1,
    stop.signal,
  )
  expect(looks).toBe(3)
  const broken = watch(() => Promise.reject(new Error('a fault')), 1, new AbortController().signal)
  await expect(broken).rejects.toThrow('a fault')
})

it.each([[['status', '--watch']], [['status', '--watch', '--json']], [['deliveries', '--follow']]])(
  '%j ends when its reader has left, as after `| grep -m 1`, and asks the bridge no more',
  async (line) => {
    let id = 0
    const { app } = admin({ deliveries: { changed: async () => [row({ id: ++id })] } as never })
    onTestFinished(() => app.close())
    const program = startProgram([...line, '--url', await app.listen({ port: 0, host: '127.0.0.1' })])
    await until('it has shown something', () => program.stdout() !== '')
    program.child.stdout?.destroy()
    expect([await program.ended(), program.stderr()]).toEqual([0, ''])
  },
)

it('of deliveries that are followed, each is shown when it is new and when its state changes, the oldest first', () => {
  const { take } = changedRows()
  const shown = (...rows: ReturnType<typeof row>[]) => take(rows).map(({ id, state }) => `${id} ${state}`)
  expect(shown(row({ id: 2, state: 'waiting' }), row({ id: 1 }))).toEqual(['1 delivered', '2 waiting'])
  expect(shown(row({ id: 3 }), row({ id: 2, state: 'delivered' }), row({ id: 1 }))).toEqual([
    '2 delivered',
    '3 delivered',
  ])
  expect(shown(row({ id: 3 }), row({ id: 1 }))).toEqual([])
  // Sent again, faster than it is looked at.
  const updatedAt = ago(0)
  expect(shown(row({ id: 1, updatedAt }), row({ id: 2, state: 'dead', updatedAt }), row({ id: 3 }))).toEqual([
    '2 dead',
    '1 delivered',
  ])
  const again = ago(-1)
  expect(shown(row({ id: 2, state: 'dead', updatedAt: again }), row({ id: 1, updatedAt }))).toEqual([
    '2 dead',
  ])
})

it('what several routes hold back from one sink is shown once for each of them, not at every look', () => {
  const { take } = changedRows()
  const heldBy = (route: string, end: string) =>
    row({
      state: 'held',
      reason: `held back by route ${route}: muted${end}`,
      withheld: { route, reason: 'muted', until: null, silence: null, comment: null },
    })
  const look = (end = '') => take([heldBy('a', end), heldBy('b', end)]).map(({ reason }) => reason)
  expect(look()).toEqual(['held back by route b: muted', 'held back by route a: muted'])
  expect(look()).toEqual([])
  expect(look(', and over')).toHaveLength(2)
  expect(look(', and over')).toEqual([])
  // Sent on purpose since.
  expect(take([row({ state: 'waiting' })])).toHaveLength(1)
})

it('the completion that is printed completes commands, their options and their actions', async () => {
  const { out } = await cli(['completion', 'bash'])
  expect(out).toMatch(/\n +dead-letters\) words="list retry drop .*--token.*--dry-run/)
  expect(out).toMatch(/\n +silence\) words="add list expire .*--match/)
  expect(out).toMatch(/\n +\*\) words="init run .* demo --help --version" ;;/)
  // By bash itself: the words so far, and what Tab makes of the last one.
  const typedWords = ['dead-l', 'dead-letters re', 'dead-letters retry --al', '--json status --wa']
  const before = ['run --config ', 'check-config ', 'dead-letters ']
  const completed = [...typedWords, 'compl', 'completion f', ...before].map((typed) => {
    const words = `COMP_WORDS=(alert-bridge ${typed.replace(/ $/, ' ""')}); COMP_CWORD=${typed.split(' ').length}`
    const script = `${out}\n${words}; _alert_bridge; echo "\${COMPREPLY[*]}"`
    return execFileSync('bash', ['--norc', '-c', script], { encoding: 'utf8' }).trim()
  })
  const options = ['dead-letters', 'retry', '--all', '--watch', 'completion', 'fish']
  // Before anything is typed no options, among which no file would be shown.
  expect(completed).toEqual([...options, '', '', 'list retry drop'])
  // zsh takes the same function, but no length of a slice that begins with a letter: it would be a modifier.
  // bashcompinit needs compinit, which an empty .zshrc does not call.
  expect((await cli(['completion', 'zsh'])).out).toMatch(
    /^whence compdef .*compinit -i; }\nautoload .*bashcompinit\n_alert_bridge\(\)/,
  )
  // Where nothing of ours fits, a file does.
  expect(out).toMatch(/\ncomplete -o default -F _alert_bridge alert-bridge\n$/)
  expect(out).not.toMatch(/\$\{[^}]*:[A-Za-z]/)
  const fish = (await cli(['completion', 'fish'])).out
  expect(fish).toContain(
    "complete -c alert-bridge -n '__fish_seen_subcommand_from status' -l watch -d 'again every",
  )
  expect(fish.split('\n')).toContain(
    "complete -c alert-bridge -n '__fish_seen_subcommand_from dead-letters' -a retry",
  )
  expect(fish).toMatch(
    /^complete -c alert-bridge -f -n 'not __fish_seen_subcommand_from init run .* demo' -a init -d '/m,
  )
  // A quote within a text, as of "the bridge's zone", does not end it.
  const word = /(?:'(?:[^'\\]|\\.)*'|[^'\s]+)/.source
  for (const line of fish.trimEnd().split('\n')) expect(line).toMatch(new RegExp(`^${word}(?: ${word})*$`))
})

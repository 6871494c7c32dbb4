import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './support/longest-first.ts'

const long = process.env['LONG'] === '1'
/** `npm run test:browser`, which finds or installs a browser first. */
const inBrowser = process.env['BROWSER'] === '1'

/** What a reader of the README has exported for a bridge of their own: no test is meant to see it. */
const ofABridge =
  /^(ADMIN_TOKEN|ALERT_BRIDGE_(URL|TOKEN)|REDIS_URL|SMTP_URL|NTFY_TOPIC|(MARKET_DATA|WEBHOOK|SLACK|TELEGRAM|DISCORD|TEAMS|PAGERDUTY)_\w+)$/
for (const name of Object.keys(process.env)) if (ofABridge.test(name)) delete process.env[name]

/**
 * Files with a process of their own: they start and kill programs, change the clock, the environment or the output of
 * their process, or measure it. All other files follow, in processes that load the sources once for many of them.
 */
const alone = [
  ...['test/contract/**/*.test.ts', 'test/docker/package.test.ts', 'test/{readme,setup}.test.ts'],
  'test/faults/{clock,cluster,kill,log,redis,replicas,sinks}.test.ts',
  'test/cli/{daemon,init,inspector,output,threads}.test.ts',
  'test/flow/{life-cycle,rolling-upgrade,stop}.test.ts',
  'test/config/canary.test.ts',
  'test/delivery/{clock,crash,watchdog}.test.ts',
  ...['test/lib/small-file.test.ts', 'test/model/walk.test.ts', 'test/sinks/tls-environment.test.ts'],
  'test/store/embedded.test.ts',
]

const browser = 'test/browser/*.test.ts'

/**
 * Files wait for locks, leases and outages for most of their time; each process needs less than a gigabyte. With more, slow cores are
 * shared by so many that tests run out of time.
 */
const maxWorkers = Math.max(availableParallelism(), Math.min(5, Math.floor(totalmem() / 1e9)))

export default defineConfig({
  test: {
    // One limit for the hooks and one for the tests: a test that needs more says so itself.
    testTimeout: long ? 1_800_000 : 20_000,
    hookTimeout: 30_000,
    // A test that runs away fails by itself instead of taking the machine with it. And most of what a test calls it calls a few times:
    // that takes a tenth less where it is compiled at once, by the cheap compiler.
    execArgv: ['--max-old-space-size=2048', '--always-sparkplug'],
    // What Node.js made of the sources and the packages is kept for the next process.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/alert-bridge-test') },
    // Tests of one file that run side by side.
    maxConcurrency: 8,
    maxWorkers,
    // The sources are loaded by Node.js itself, as in the product, which also keeps what it made of them: Vitest's own
    // imports take three times as long to load, and what they load computes at half the speed.
    server: { deps: { external: [/\/(src|test\/(bench|support|model))\//] } },
    sequence: { sequencer: LongestFirst },
    projects: inBrowser
      ? [{ extends: true, test: { name: 'browser', include: [browser], testTimeout: 60_000 } }]
      : [
          {
            extends: true,
            test: { name: 'alone', include: alone },
          },
          {
            extends: true,
            test: {
              name: 'together',
              include: ['test/**/*.test.ts'],
              exclude: [...alone, browser],
              isolate: false,
            },
          },
        ],
  },
})

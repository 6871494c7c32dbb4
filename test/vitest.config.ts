import { defineConfig } from 'vitest/config'

const long = process.env['LONG'] === '1'

/** Tests that mostly wait, for locks, leases and outages, and start programs of their own: they may be more at a time. */
const waiting = ['test/faults/**/*.test.ts', 'test/flow/**/*.test.ts', 'test/delivery/outage.test.ts']

export default defineConfig({
  test: {
    // One limit for the hooks and one for the tests: a test that needs more says so itself.
    testTimeout: long ? 1_800_000 : 20_000,
    hookTimeout: 30_000,
    // A test that runs away fails by itself instead of taking the machine with it.
    execArgv: ['--max-old-space-size=2048'],
    // Tests of one file that run side by side.
    maxConcurrency: 8,
    // One after the other, so that what computes takes no time from what is measured by the clock.
    projects: [
      {
        extends: true,
        test: {
          name: 'computing',
          include: ['test/**/*.test.ts'],
          exclude: waiting,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'waiting', include: waiting, maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
    ],
  },
})

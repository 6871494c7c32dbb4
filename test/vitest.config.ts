import { defineConfig } from 'vitest/config'

const long = process.env['LONG'] === '1'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // One limit for the hooks and one for the tests: a test that needs more says so itself.
    testTimeout: long ? 1_800_000 : 20_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
    // Tests that run side by side mostly wait for times to pass.
    maxConcurrency: 8,
    // A test that runs away fails by itself instead of taking the machine with it.
    execArgv: ['--max-old-space-size=2048'],
  },
})

/** For tests that wait for nothing: the limit only ends one that runs away, however slow the machine is. */
export const computing = { testTimeout: process.env['LONG'] === '1' ? 1_800_000 : 60_000 }

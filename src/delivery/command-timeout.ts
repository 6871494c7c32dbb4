/**
 * Redis answers a command, or a few that are sent together, within milliseconds or not at all: nothing here waits longer for it.
 * What moves or reads thousands of jobs at once has a limit of its own.
 */
export const commandTimeoutMs = 5_000

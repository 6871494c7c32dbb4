/** What every arm of `sends.ts` has in common. */
export const prefix = 'bench'
export const sinks = ['first', 'second', 'third'] as const
/** Sends of one sink at a time. */
export const width = 50

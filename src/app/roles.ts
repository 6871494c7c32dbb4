/** What one process does: all replicas may do everything, or some poll and the others send. */
export const roles = ['all', 'poller', 'sender'] as const
export type Role = (typeof roles)[number]

/** What one process does: replicas of a deployment may share the work or split it. */
export const roles = ['all', 'poller', 'sender'] as const
export type Role = (typeof roles)[number]

/** Every type of sink there is, under its name: a new one gets a folder and a line here, and passes the contract suite. */

export { discord } from './discord/sink.ts'
export { email } from './email/sink.ts'
export { http } from './http/sink.ts'
export { ntfy } from './ntfy/sink.ts'
export { pagerduty } from './pagerduty/sink.ts'
export { slack } from './slack/sink.ts'
export { teams } from './teams/sink.ts'
export { telegram } from './telegram/sink.ts'
export { webhook } from './webhook/sink.ts'

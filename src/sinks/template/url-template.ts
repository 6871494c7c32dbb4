import { isCpuLimitSpent, oncePerCheck } from '../../alert/match/cpu-limit.ts'
import type { Display } from '../../alert/text/display.ts'
import { httpUrlProblem } from '../common-config.ts'
import type { Parcel } from '../sink.ts'
import { SinkError } from '../transport/fault.ts'
import { createTemplate, formProblem, trialDisplay } from './template.ts'
import { cpuLimitSpent, trialProblem } from './trial.ts'

/**
 * An address with values of the alert in its path or query, each encoded, so that no value can change the host, the path
 * or the number of parameters. Problems never quote the address: it may contain a token.
 */
export function urlTemplateProblem(text: string): string | undefined {
  const start = fixedStart(text)
  const isFixed = start === text
  if (!isFixed && !/^https?:\/\/[^/?#]+[/?#]/i.test(start))
    return 'expected https://, the host and a / before the first value of the alert'
  const problem = httpUrlProblem(start, { userinfo: false })
  if (problem !== undefined || isFixed) return problem
  return oncePerCheck(`address ${text}`, () => trialOf(text))
}

function trialOf(text: string): string | undefined {
  if (isCpuLimitSpent()) return cpuLimitSpent
  if (formProblem(text, 'url') !== undefined)
    return 'the template in the address cannot be used (a value is written {{ symbol }}, and none may be raw)'
  const template = createUrlTemplate(text, trialDisplay)
  return trialProblem((parcel) => template.render(parcel), { documentedOnly: true })
}

export interface UrlTemplate {
  /** Throws a SinkError (`unrenderable`). */
  render(parcel: Parcel): URL
}

export function createUrlTemplate(text: string, display: Display): UrlTemplate {
  const start = fixedStart(text)
  const fixed = start === text ? URL.parse(text) : null
  if (fixed) return { render: () => new URL(fixed) }
  const template = createTemplate(text, 'url', display)
  const { origin } = new URL(start)
  return {
    render(parcel) {
      const rendered = template.render(parcel).trim()
      const path = rendered.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/)[0] ?? ''
      const url = URL.parse(rendered)
      if (url?.origin !== origin || leavesItsPlace(path))
        throw new SinkError(
          'unrenderable',
          'a value of this alert would lead to another address (for one that may be missing: {{ symbol | default: "none" }})',
        )
      return url
    },
  }
}

/** Up to the first value or tag. */
function fixedStart(text: string): string {
  return text.split(/\{[{%]/, 1)[0] ?? ''
}

/** `.` and `..`, encoded or not, change the path; an empty part addresses the collection instead of its member. */
function leavesItsPlace(path: string): boolean {
  const parts = path.split('/').slice(1)
  return parts.some((part, at) => /^(\.|%2e){1,2}$/i.test(part) || (part === '' && at < parts.length - 1))
}

import * as z from 'zod'
import { withoutNamedSecrets } from '../telemetry/named-secrets.ts'
import { escapingOf } from './template/escaping.ts'
import { templateProblem } from './template/template.ts'

/** A body made by a Liquid template, and what it is. */
export const bodyFields = {
  template: z
    .string()
    .min(1)
    .optional()
    .meta({ show: withoutNamedSecrets })
    .describe(
      'A Liquid template for the body. Values are escaped for the contentType; in JSON write "{{ headline }}" for text (null is an empty one) or {{ headline }} for JSON of its own type. It is tried with many kinds of alerts.',
    ),
  contentType: z
    .string()
    .regex(
      /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+( *; *[A-Za-z0-9-]+=("[ !#-[\]-~]*"|[!-:<-~]+))*$/,
      'expected a media type such as application/json or text/plain; charset=utf-8',
    )
    .optional()
    .describe('What the template makes; application/json without it.'),
}

interface BodyConfig {
  readonly template?: string | undefined
  readonly contentType?: string | undefined
}

/** Checks the two fields against each other. */
export function checkBody(config: BodyConfig, context: z.RefinementCtx): void {
  const { template, contentType } = config
  if (template === undefined) {
    if (contentType !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['contentType'],
        message: 'belongs to a template, and there is none',
      })
    return
  }
  const message = templateProblem(template, escapingOf(contentType ?? 'application/json'))
  if (message !== undefined) context.addIssue({ code: 'custom', path: ['template'], message })
}

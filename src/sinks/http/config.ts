import * as z from 'zod'
import { bodyFields, checkBody } from '../body-config.ts'
import { checkedSecret, commonSinkFields, proxyField, tlsField } from '../common-config.ts'
import { headersField } from '../headers-config.ts'
import { urlTemplateProblem } from '../template/url-template.ts'
import { authField, checkAuth } from '../transport/headers.ts'

export type HttpSinkConfig = z.output<typeof httpConfigSchema>

export const httpConfigSchema = z
  .strictObject({
    ...commonSinkFields,
    type: z.literal('http'),
    /** It may contain a token, so it is a secret; its path and query may contain `{{ symbol }}` and other values. */
    url: checkedSecret(urlTemplateProblem),
    method: z.enum(['POST', 'PUT', 'PATCH']).default('POST'),
    auth: authField.optional(),
    headers: headersField(),
    ...bodyFields,
    tls: tlsField().optional(),
    proxy: proxyField.optional(),
  })
  .superRefine((config, context) => {
    checkBody(config, context)
    checkAuth(config, context)
  })

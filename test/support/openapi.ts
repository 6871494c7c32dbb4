import { Ajv2020 } from 'ajv/dist/2020.js'

/** The document of a running bridge's API, and what its answers are checked against. */
interface Documented {
  readonly document: OpenApi
  /** Why the answer is not what the document says; fields that it does not name are mistakes, too. */
  mistakesOf(schema: object, value: unknown): string
  /** The schema of a successful answer. */
  answerOf(path: string, method?: string): { schema: object; status: number }
}

export interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks: Readonly<Record<string, { post: { requestBody: { content: Content } } }>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

type Content = Readonly<Record<string, { readonly schema: object }>>

export function documented(document: OpenApi): Documented {
  const ajv = new Ajv2020({ validateFormats: false, allErrors: true, strict: false })
  const { schemas } = strict(document.components) as OpenApi['components']
  ajv.addSchema({ $id: 'document', components: { schemas } })
  return {
    document,
    mistakesOf(schema, value) {
      const text = JSON.stringify(schema).replaceAll('"#/', '"document#/')
      const check = ajv.compile(JSON.parse(text))
      return check(value) ? '' : ajv.errorsText(check.errors)
    },
    answerOf(path, method = 'get') {
      const responses = document.paths[path]?.[method]?.responses ?? {}
      const [status = '0', answer] = Object.entries(responses).find(([each]) => /^2/.test(each)) ?? []
      const schema = answer?.content?.['application/json']?.schema
      if (!schema) throw new Error(`no JSON answer of ${method} ${path} is documented`)
      return { schema, status: Number(status) }
    },
  }
}

/** The same with no further fields, where nothing is said of them: so a test notices what the document lacks. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, strict(value)]))
  return 'properties' in inner && !('additionalProperties' in inner)
    ? { ...inner, additionalProperties: false }
    : inner
}

import type { TSchema } from 'typebox'

/** One operation as a document describes it; the public and the internal table both fit. */
export interface DescribedOperation {
  readonly id: string
  readonly method: string
  /** With `{parameter}`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly tag?: string
  readonly params?: TSchema
  readonly query?: TSchema
  readonly headers?: TSchema
  readonly body?: TSchema
  readonly bodyExamples?: Examples
  readonly successes: readonly {
    readonly status: number
    readonly schema?: TSchema
    readonly description: string
    readonly examples?: Examples
  }[]
  /** Beside those that every operation has. */
  readonly errors?: readonly DescribedError[]
}

/** A status and what it means. */
export interface DescribedError {
  readonly status: number
  readonly description: string
  /** Makes it a component of that name, written once for all operations. */
  readonly name?: string
  readonly examples?: Examples
}

/** Examples of a body by name. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>

/** A header of answers. */
export interface DescribedHeader {
  readonly description: string
  readonly schema: Readonly<Json>
  /** The statuses that have it; all when absent. */
  readonly statuses?: readonly number[]
}

/** An API to describe. */
export interface DescribedApi {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly license?: { readonly name: string; readonly identifier: string }
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
  readonly tags?: readonly { readonly name: string; readonly description: string }[]
  readonly operations: readonly DescribedOperation[]
  /** The body of every error. */
  readonly error: TSchema
  /** What every operation may answer. */
  readonly errors: readonly DescribedError[]
  /** What the bearer credential is. */
  readonly bearer: string
  /** Headers of the answers, by name. */
  readonly answerHeaders?: Readonly<Record<string, DescribedHeader>>
}

type Json = Record<string, unknown>

/**
 * The OpenAPI 3.1 document of an API, out of the same schemas that check its requests: every object schema with a title
 * becomes a component, wherever it stands. The same input gives the same text.
 */
export function buildOpenApi(api: DescribedApi): Json {
  const components = new Map<string, Json>()
  const toSchema = (schema: TSchema): Json => toReference(plain(schema), components)
  const content = (schema: TSchema, examples?: Examples): Json => ({
    'application/json': { schema: toSchema(schema), ...(examples ? { examples } : {}) },
  })
  const answer = (status: number, description: string, schema?: TSchema, examples?: Examples): Json => {
    const headers = Object.entries(api.answerHeaders ?? {})
      .filter(([, { statuses }]) => statuses?.includes(status) ?? true)
      .map(([name]) => [name, { $ref: `#/components/headers/${name}` }])
    return {
      description,
      ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
      ...(schema ? { content: content(schema, examples) } : {}),
    }
  }
  const errorAnswers = new Map<string, Json>()
  const errorAnswer = ({ status, description, name, examples }: DescribedError): Json => {
    const body = answer(status, description, api.error, examples)
    if (name === undefined) return body
    errorAnswers.set(name, body)
    return { $ref: `#/components/responses/${name}` }
  }
  const paths: Record<string, Json> = {}
  for (const operation of api.operations) {
    const errors = [...api.errors, ...(operation.errors ?? [])].toSorted((a, b) => a.status - b.status)
    const responses = [
      ...operation.successes.map(({ status, description, schema, examples }) => [
        status,
        answer(status, description, schema, examples),
      ]),
      ...errors.map((error) => [error.status, errorAnswer(error)]),
    ] as [number, Json][]
    const path = (paths[operation.path] ??= {})
    path[operation.method] = {
      operationId: operation.id,
      summary: operation.summary,
      description: operation.description,
      ...(operation.tag === undefined ? {} : { tags: [operation.tag] }),
      parameters: [
        ...toParameters(operation.params, 'path'),
        ...toParameters(operation.query, 'query'),
        ...toParameters(operation.headers, 'header'),
      ],
      ...(operation.body
        ? { requestBody: { required: true, content: content(operation.body, operation.bodyExamples) } }
        : {}),
      responses: Object.fromEntries(responses.map(([status, body]) => [String(status), body])),
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: api.title,
      version: api.version,
      description: api.description,
      ...(api.license ? { license: api.license } : {}),
    },
    ...(api.servers ? { servers: api.servers } : {}),
    ...(api.tags ? { tags: api.tags } : {}),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      ...(errorAnswers.size > 0 ? { responses: Object.fromEntries(errorAnswers) } : {}),
      ...(api.answerHeaders ? { headers: describeHeaders(api.answerHeaders) } : {}),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: api.bearer } },
    },
  }
}

function describeHeaders(headers: Readonly<Record<string, DescribedHeader>>): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { description, schema }]) => [name, { description, schema }]),
  )
}

function toParameters(schema: TSchema | undefined, place: 'path' | 'query' | 'header'): Json[] {
  if (!schema) return []
  const { properties = {}, required = [] } = plain(schema) as { properties?: Record<string, Json>; required?: string[] }
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = toReference(property, new Map())
    return { name, in: place, required: required.includes(name), description, schema: rest }
  })
}

/** The schema with each titled object in it moved to the components. */
function toReference(schema: Json, components: Map<string, Json>): Json {
  const converted = Object.fromEntries(
    Object.entries(schema)
      // A format of this package's own validator.
      .filter(([key, value]) => !(key === 'format' && value === 'storable'))
      .map(([key, value]) => [key, convert(value, components, key)]),
  )
  const { title } = schema
  if (typeof title !== 'string' || schema['type'] !== 'object') return converted
  components.set(title, converted)
  return { $ref: `#/components/schemas/${title}` }
}

function convert(value: unknown, components: Map<string, Json>, key: string): unknown {
  // What stands there are values of the data, and no schemas.
  if (['enum', 'const', 'default', 'examples', 'required'].includes(key)) return value
  if (Array.isArray(value)) return value.map((item) => (isJson(item) ? toReference(item, components) : item))
  if (!isJson(value)) return value
  if (key === 'properties') {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, isJson(item) ? toReference(item, components) : item]),
    )
  }
  return toReference(value, components)
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** TypeBox keeps marks of its own beside the schema; as JSON they are gone. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json
}

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
  readonly body?: TSchema
  readonly successes: readonly { readonly status: number; readonly schema?: TSchema; readonly description: string }[]
  /** Beside those that every operation has. */
  readonly errors?: readonly DescribedError[]
}

/** A status and what it means. */
export interface DescribedError {
  readonly status: number
  readonly description: string
}

/** An API to describe. */
export interface DescribedApi {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
  readonly tags?: readonly { readonly name: string; readonly description: string }[]
  readonly operations: readonly DescribedOperation[]
  /** The body of every error. */
  readonly error: TSchema
  /** What every operation may answer. */
  readonly errors: readonly DescribedError[]
  /** What the bearer credential is. */
  readonly bearer: string
  /** Header parameters and answer headers by operation id, for what no schema says. */
  readonly headers?: Readonly<Record<string, readonly Json[]>>
}

type Json = Record<string, unknown>

/**
 * The OpenAPI 3.1 document of an API, out of the same schemas that check its requests: every object schema with a title
 * becomes a component, wherever it stands. The same input gives the same text.
 */
export function buildOpenApi(api: DescribedApi): Json {
  const components = new Map<string, Json>()
  const toSchema = (schema: TSchema): Json => toReference(plain(schema), components)
  const answer = (description: string, schema?: TSchema): Json => ({
    description,
    ...(schema ? { content: { 'application/json': { schema: toSchema(schema) } } } : {}),
  })
  const paths: Record<string, Json> = {}
  for (const operation of api.operations) {
    const errors = [...api.errors, ...(operation.errors ?? [])].toSorted((a, b) => a.status - b.status)
    const responses = [
      ...operation.successes.map(({ status, description, schema }) => [status, answer(description, schema)]),
      ...errors.map(({ status, description }) => [status, answer(description, api.error)]),
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
        ...(api.headers?.[operation.id] ?? []),
      ],
      ...(operation.body
        ? { requestBody: { required: true, content: { 'application/json': { schema: toSchema(operation.body) } } } }
        : {}),
      responses: Object.fromEntries(responses.map(([status, body]) => [String(status), body])),
    }
  }
  return {
    openapi: '3.1.0',
    info: { title: api.title, version: api.version, description: api.description },
    ...(api.servers ? { servers: api.servers } : {}),
    ...(api.tags ? { tags: api.tags } : {}),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: api.bearer } },
    },
  }
}

function toParameters(schema: TSchema | undefined, place: 'path' | 'query'): Json[] {
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

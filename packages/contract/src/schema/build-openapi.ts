import type { TSchema } from 'typebox'
import { ERROR_CODES, ERROR_MEANINGS, type ErrorCode, type ErrorStatus } from '../errors.ts'
import { OWN_FORMATS } from './ajv.ts'
import type { BaseOperation } from './define-operations.ts'
import { isJsonObject } from './payload-shape.ts'

/** One operation to describe, or a request that the service sends to a customer's endpoint. */
export interface DescribedOperation extends BaseOperation {
  readonly tag: string
  readonly bodyExamples?: Examples
  /** Whether the operation needs no credential. */
  readonly isOpen?: boolean
  /** The errors of this operation; those of the API if absent. */
  readonly errorCodes?: readonly ErrorCode[]
  /** Whether it declares every status of the API, also those that it never answers. */
  readonly declaresAllStatuses?: boolean
  /** Of a webhook, everything that the endpoint may answer. */
  readonly successes: readonly DescribedResponse[]
}

interface DescribedResponse {
  /** `2XX` is any such status, `default` any other. */
  readonly status: number | '2XX' | 'default'
  readonly schema?: TSchema
  /** Default: JSON. */
  readonly mediaType?: string
  readonly description: string
  readonly examples?: Examples
}

/** The component of each error's response, which all operations share. */
const ERROR_NAMES: Readonly<Record<ErrorStatus, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  421: 'MisdirectedRequest',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
}

/** Examples of a body, by name. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>

/** A response header. */
export interface DescribedHeader {
  readonly description: string
  readonly schema: Readonly<Json>
  /** The statuses that have it; all if absent. */
  readonly statuses?: readonly number[]
}

export interface DescribedApi {
  readonly title: string
  readonly description: string
  /** What the paths are appended to, without a slash at the end. */
  readonly serverUrl: string
  /** Default: those of the operations. */
  readonly tags?: readonly { readonly name: string; readonly description: string }[]
  readonly operations: readonly DescribedOperation[]
  readonly webhooks?: readonly DescribedOperation[]
  /** The body of every error. */
  readonly error: TSchema
  /** The codes of its errors. */
  readonly errorCodes: readonly ErrorCode[]
  /** The security scheme of every operation that is not open, by its name. */
  readonly credential: Readonly<Record<string, Readonly<Json>>>
  /** Response headers, by name. */
  readonly responseHeaders?: Readonly<Record<string, DescribedHeader>>
}

type Json = Record<string, unknown>

/** Object schemas with a title, by title: they become components of the document. */
type Components = Map<string, Json>

/**
 * Builds the OpenAPI 3.1 document of an API from the schemas that validate its requests. Every object schema with a
 * title becomes a component, at any depth. The same input gives the same document.
 */
export function buildOpenApi(api: DescribedApi): Json {
  const components: Components = new Map()
  const describeAll = (operations: readonly DescribedOperation[], described = api): Record<string, Json> => {
    const paths: Record<string, Json> = {}
    for (const operation of operations) {
      const path = (paths[operation.path] ??= {})
      path[operation.method] = describeOperation(described, operation, components)
    }
    return paths
  }
  const { title, description, serverUrl, responseHeaders, webhooks } = api
  const names = new Set(api.operations.map(({ tag }) => tag))
  const tags = api.tags ?? Array.from(names, (name) => ({ name, description: `Operations on ${name}.` }))
  const errors = Array.from(byStatus(api.errorCodes), ([status, codes]) => {
    return [ERROR_NAMES[status], describeError(api, status, codes, components)] as const
  })
  return {
    openapi: '3.1.0',
    info: { title, version: '1.0.0', description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: serverUrl, description: 'The server that this document describes.' }],
    tags,
    security: Object.keys(api.credential).map((name) => ({ [name]: [] })),
    paths: describeAll(api.operations),
    ...(webhooks ? { webhooks: describeAll(webhooks, { ...api, responseHeaders: {} }) } : {}),
    components: {
      schemas: Object.fromEntries([...components].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(errors),
      ...(responseHeaders ? { headers: describeHeaders(responseHeaders) } : {}),
      securitySchemes: api.credential,
    },
  }
}

function describeOperation(api: DescribedApi, operation: DescribedOperation, components: Components): Json {
  const { id, summary, description, tag, body, bodyExamples, successes } = operation
  const responses = [
    ...successes.map((success) => [success.status, describeResponse(api, success, components)] as const),
    ...Array.from(byStatus(api.errorCodes)).flatMap(([status, all]): (readonly [ErrorStatus, Json])[] => {
      const codes = all.filter((code) => operation.errorCodes?.includes(code) ?? true)
      if (codes.length === all.length) return [[status, { $ref: `#/components/responses/${ERROR_NAMES[status]}` }]]
      const isDeclared = codes.length > 0 || operation.declaresAllStatuses
      return isDeclared ? [[status, describeError(api, status, codes, components)]] : []
    }),
  ]
  return {
    operationId: id,
    summary,
    description,
    tags: [tag],
    ...(operation.isOpen ? { security: [] } : {}),
    parameters: [
      ...describeParameters(operation.params, 'path'),
      ...describeParameters(operation.query, 'query'),
      ...describeParameters(operation.headers, 'header'),
    ],
    ...(body ? { requestBody: { required: true, content: describeContent(body, bodyExamples, components) } } : {}),
    responses: Object.fromEntries(responses),
  }
}

function byStatus(codes: readonly ErrorCode[]): Map<ErrorStatus, ErrorCode[]> {
  return Map.groupBy(codes, (code) => ERROR_CODES[code])
}

/** Says what each code means; the example has the first. Without codes, the status is declared and never answered. */
function describeError(
  api: DescribedApi,
  status: ErrorStatus,
  codes: readonly ErrorCode[],
  components: Components,
): Json {
  const [first] = codes
  const described = {
    status,
    codes,
    schema: api.error,
    description:
      codes.map((code) => `\`${code}\`: ${ERROR_MEANINGS[code]}.`).join(' ') ||
      'Declared for every operation; this one does not answer it.',
    ...(first ? { examples: { [first]: exampleOf(first) } } : {}),
  }
  return describeResponse(api, described, components)
}

function exampleOf(code: ErrorCode): Examples[string] {
  const meaning = ERROR_MEANINGS[code]
  const message = `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`
  const details = [{ field: 'context', code: 'string_too_short', message: 'must have at least 1 character' }]
  const error = { code, message, request_id: '01a1fd4e-f105-74b4-8d5a-5afed503624a' }
  return {
    summary: message,
    value: { error: { ...error, ...(code === 'validation_error' ? { details } : {}) } },
  }
}

function describeResponse(
  api: DescribedApi,
  response: DescribedResponse & { readonly codes?: readonly ErrorCode[] },
  components: Components,
): Json {
  const { status, description, schema, mediaType, examples, codes } = response
  const headers = Object.entries(api.responseHeaders ?? {})
    .filter(([, { statuses }]) => statuses?.some((each) => each === status) ?? true)
    .map(([name]) => [name, { $ref: `#/components/headers/${name}` }])
  return {
    description,
    ...(codes ? { 'x-error-codes': codes } : {}),
    ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
    ...(schema ? { content: describeContent(schema, examples, components, mediaType) } : {}),
  }
}

function describeContent(
  schema: TSchema,
  examples: Examples | undefined,
  components: Components,
  mediaType = 'application/json',
): Json {
  return { [mediaType]: { schema: toReference(schema, components), ...(examples ? { examples } : {}) } }
}

function describeHeaders(headers: Readonly<Record<string, DescribedHeader>>): Json {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { description, schema }]) => [name, { description, schema }]),
  )
}

function describeParameters(schema: TSchema | undefined, location: 'path' | 'query' | 'header'): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, TSchema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = toReference(property, new Map())
    return { name, in: location, required: required.includes(name), description, schema: rest }
  })
}

/** Replaces each titled object in the schema by a reference to a component, and leaves out our own formats. */
function toReference(schema: TSchema, components: Components): Json {
  return JSON.parse(JSON.stringify(schema), (key, value: unknown) => {
    if (key === 'format' && OWN_FORMATS.includes(value)) return undefined
    if (!isJsonObject(value) || value['type'] !== 'object' || typeof value['title'] !== 'string') return value
    components.set(value['title'], value)
    return { $ref: `#/components/schemas/${value['title']}` }
  }) as Json
}

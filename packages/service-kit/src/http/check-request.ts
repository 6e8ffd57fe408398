import {
  compile,
  ERROR_DETAILS_MAX,
  type FieldError,
  inFieldOrder,
  toFieldErrors,
  TRIMMED_FORMATS,
  trimWhiteSpace,
} from '@workflow-service/contract'
import type { Request } from 'express'
import type { TSchema } from 'typebox'
import type { Static } from '@workflow-service/contract/type'
import { invalidFields } from './errors.ts'
import type { JsonBody } from './json-body.ts'

/** An operation as its requests are read and checked; the tables of packages/contract fit. */
export interface HttpOperation {
  readonly id: string
  readonly method: string
  /** OpenAPI style: `/v1/workflows/{workflow_id}`. */
  readonly path: string
  readonly params?: TSchema
  readonly query?: TSchema
  readonly headers?: TSchema
  /** A closed object: unknown fields are violations. White space around texts of `TRIMMED_FORMATS` is removed. */
  readonly body?: TSchema
  /** The status of a response whose handler names none. Default 200. */
  readonly success?: { readonly status: number }
}

type RequestPart = 'params' | 'query' | 'headers' | 'body'
export type PartOf<Operation extends HttpOperation, Part extends RequestPart> =
  Operation extends Record<Part, infer Schema extends TSchema> ? Static<Schema> : undefined

/** The parts of a request that its operation's schemas have accepted: UUIDs in lower case, integers as numbers. */
export type CheckedParts<Operation extends HttpOperation> = {
  readonly [Part in RequestPart]: PartOf<Operation, Part>
}

/**
 * Checks what a schema cannot express. `valid` lacks the fields that have a violation already; a body that is no object
 * is not passed at all.
 */
export type Rule<Values, Principal> = (
  valid: Partial<Values>,
  context: {
    readonly principal: Principal
    /** The body's text as it was sent; empty when there is none. */
    readonly bodyText: string
    /** The violations of this part so far. */
    readonly violations: readonly FieldError[]
  },
) => readonly FieldError[]

export interface OperationRules<Operation extends HttpOperation, Principal> {
  readonly query?: Rule<PartOf<Operation, 'query'>, Principal>
  readonly body?: Rule<PartOf<Operation, 'body'>, Principal>
}

/** A request before it is checked. */
export interface UncheckedRequest<Principal> {
  readonly req: Pick<Request, 'url' | 'headersDistinct'>
  readonly params: Readonly<Record<string, string>>
  readonly body: JsonBody
  readonly principal: Principal
}

interface Violations {
  readonly list: FieldError[]
  /** Number of further unknown fields, which an error only counts. */
  omittedCount: number
}

/** Reads the values of a part's properties, and adds the violations that it finds in them. */
type PartReader = (request: UncheckedRequest<unknown>, properties: Properties, found: Violations) => unknown
type PartChecker<Principal> = (request: UncheckedRequest<Principal>, found: Violations) => unknown

/**
 * Creates the function that checks requests of an operation and throws all violations at once (422): path,
 * query, headers, body, each in its schema's order with unknown fields last (contract README, "Errors").
 */
export function requestChecker<Operation extends HttpOperation, Principal>(
  operation: Operation,
  rules: OperationRules<Operation, Principal> = {},
): (request: UncheckedRequest<Principal>) => CheckedParts<Operation> {
  const checkParams = partChecker<Principal>(operation.params, ({ params }) => ({ ...params }))
  const checkQuery = partChecker<Principal>(operation.query, readQuery, rules.query)
  const checkHeaders = partChecker<Principal>(operation.headers, readHeaders)
  const checkBody = partChecker<Principal>(operation.body, readBody, rules.body)
  return (request) => {
    const found: Violations = { list: [], omittedCount: 0 }
    const parts = {
      params: checkParams(request, found),
      query: checkQuery(request, found),
      headers: checkHeaders(request, found),
      body: checkBody(request, found),
    }
    if (found.list.length > 0) throw invalidFields(found.list, found.omittedCount)
    return parts as CheckedParts<Operation>
  }
}

/** Creates a function that reads one part, adds its violations to the list, and returns its values. */
function partChecker<Principal>(
  schema: TSchema | undefined,
  read: PartReader,
  rule?: Rule<never, Principal>,
): PartChecker<Principal> {
  if (!schema) return () => undefined
  // Compiled for the first request: most processes serve few of their operations.
  let isValid: ReturnType<typeof compile> | undefined
  const { properties } = schema as unknown as { properties: Properties }
  const order = Object.keys(properties)
  return (request, found) => {
    const own: Violations = { list: [], omittedCount: 0 }
    const values = read(request, properties, own)
    isValid ??= compile(schema)
    const errors = values === undefined || isValid(values) ? [] : toFieldErrors(isValid.errors ?? [])
    const reported = new Set(own.list.map(({ field }) => field))
    const violations = [...own.list, ...errors.filter(({ field }) => !reported.has(field))]
    if (rule && !violations.some(({ field }) => field === 'body')) {
      const { principal, body } = request
      const valid = withoutFields(values, violations) as Partial<never>
      violations.push(...rule(valid, { principal, bodyText: body.text ?? '', violations }))
    }
    for (const violation of inFieldOrder(violations, order)) found.list.push(violation)
    found.omittedCount += own.omittedCount
    return lowerCaseUuids(properties, values)
  }
}

/** Reads integers as decimal digits only. A repeated parameter is a violation: we do not pick one of its values. */
function readQuery({ req }: UncheckedRequest<unknown>, properties: Properties, { list }: Violations): unknown {
  const given = parseQuery(req.url)
  const values: Record<string, unknown> = {}
  for (const [name, { type, default: defaultValue }] of Object.entries(properties)) {
    const [value = defaultValue, ...repeated] = given.getAll(name)
    const isInteger = type === 'integer'
    if (repeated.length > 0) {
      list.push({ field: name, code: isInteger ? 'int_parsing' : 'string_type', message: 'must be given once' })
    } else if (isInteger && typeof value === 'string') {
      if (/^\d+$/.test(value)) values[name] = Math.min(Number(value), Number.MAX_SAFE_INTEGER)
      else list.push({ field: name, code: 'int_parsing', message: 'must be a whole number in decimal digits' })
    } else if (value !== undefined) {
      values[name] = value
    }
  }
  return values
}

/** @throws URIError when the query is not percent-encoded UTF-8, where URLSearchParams would guess. */
function parseQuery(target: string): URLSearchParams {
  const start = target.indexOf('?')
  const query = start === -1 ? '' : target.slice(start)
  decodeURIComponent(query)
  return new URLSearchParams(query)
}

/** A repeated header is a violation, but for the trace context: it is joined, and ignored if that makes it invalid. */
function readHeaders({ req }: UncheckedRequest<unknown>, properties: Properties, { list }: Violations): unknown {
  const values: Record<string, string> = {}
  for (const name of Object.keys(properties)) {
    const given = req.headersDistinct[name.toLowerCase()] ?? []
    const isJoined = name === 'traceparent' || name === 'tracestate'
    if (given.length > 1 && !isJoined) list.push({ field: name, code: 'string_type', message: 'must be given once' })
    else if (given.length > 0) values[name] = given.join(', ')
  }
  return values
}

/** An error has the name of an unknown field twice: a long one would make it larger than its body. */
const MAX_SHOWN_NAME = 200

/** Takes unknown fields out of the body: ajv would make an error of each. */
function readBody({ body }: UncheckedRequest<unknown>, properties: Properties, found: Violations): unknown {
  const given = body.value
  if (given === undefined || given === null) {
    found.list.push({ field: 'body', code: 'missing', message: 'is required: send a JSON object' })
    return undefined
  }
  if (typeof given !== 'object' || Array.isArray(given)) return given
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(properties, name)) {
      const { [name]: value } = given as Record<string, unknown>
      const isTrimmed = typeof value === 'string' && TRIMMED_FORMATS.includes(properties[name]?.format)
      values[name] = isTrimmed ? trimWhiteSpace(value) : value
    } else if (found.list.length === ERROR_DETAILS_MAX) {
      found.omittedCount += 1
    } else {
      const field = name.length > MAX_SHOWN_NAME ? `${name.slice(0, MAX_SHOWN_NAME).toWellFormed()}…` : name || 'body'
      const message = name === '' ? 'has a field without a name; remove it' : 'is not a known field; remove it'
      found.list.push({ field, code: 'extra_forbidden', message })
    }
  }
  return values
}

function withoutFields(values: unknown, violations: readonly FieldError[]): unknown {
  if (violations.length === 0) return values
  const fields = new Set(violations.map(({ field }) => field.split('.')[0]))
  return Object.fromEntries(Object.entries(values ?? {}).filter(([name]) => !fields.has(name)))
}

function lowerCaseUuids(properties: Properties, values: unknown): unknown {
  const lowerCased = values as Record<string, unknown>
  for (const [name, { format, items }] of Object.entries(properties)) {
    const value = lowerCased?.[name]
    if (format === 'uuid' && typeof value === 'string') lowerCased[name] = value.toLowerCase()
    if (items?.format === 'uuid' && Array.isArray(value)) {
      lowerCased[name] = value.map((id: unknown) => (typeof id === 'string' ? id.toLowerCase() : id))
    }
  }
  return lowerCased
}

type Properties = Readonly<Record<string, PropertySchema>>

interface PropertySchema {
  readonly type?: unknown
  readonly format?: string
  readonly items?: { readonly format?: string }
  readonly default?: unknown
}

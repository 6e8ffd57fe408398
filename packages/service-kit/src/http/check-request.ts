import {
  compile,
  ERROR_DETAILS_MAX,
  type FieldError,
  inFieldOrder,
  toFieldErrors,
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
  /** A closed object: unknown fields are violations. */
  readonly body?: TSchema
  /** Fields of the body whose surrounding white space is removed before they are checked. */
  readonly trimmed?: readonly string[]
  /** The status of an answer whose handler names none. Default 200. */
  readonly success?: { readonly status: number }
}

export type RequestPart = 'params' | 'query' | 'headers' | 'body'
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
  readonly req: Pick<Request, 'url' | 'headers'>
  readonly params: Readonly<Record<string, string>>
  readonly body: JsonBody
  readonly principal: Principal
}

/** The values of a part's properties, and the violations found while they were read. */
interface PartValues {
  readonly values: unknown
  readonly violations: readonly FieldError[]
  /** Number of further unknown fields, which an error only counts. */
  readonly omittedCount?: number
}

/** The violations of a request, and how many more there are. */
interface FoundViolations {
  readonly list: FieldError[]
  omittedCount: number
}

type PartReader<Principal> = (request: UncheckedRequest<Principal>, schema: TSchema) => PartValues
type PartChecker<Principal> = (request: UncheckedRequest<Principal>, found: FoundViolations) => unknown

/**
 * Creates the function that checks requests of an operation and throws all violations at once (422): path,
 * query, headers, body, each in its schema's order with unknown fields last (contract README, "Errors").
 */
export function requestChecker<Operation extends HttpOperation, Principal>(
  operation: Operation,
  rules: OperationRules<Operation, Principal> = {},
): (request: UncheckedRequest<Principal>) => CheckedParts<Operation> {
  const trimmed = operation.trimmed ?? []
  const checkParams = partChecker<Principal>(operation.params, ({ params }) => noViolations({ ...params }))
  const checkQuery = partChecker<Principal>(operation.query, readQuery, rules.query)
  const checkHeaders = partChecker<Principal>(operation.headers, readHeaders)
  const readValue: PartReader<Principal> = ({ body }, schema) => readBody(body.value, schema, trimmed)
  const checkBody = partChecker<Principal>(operation.body, readValue, rules.body)
  return (request) => {
    const found: FoundViolations = { list: [], omittedCount: 0 }
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
  read: PartReader<Principal>,
  rule?: Rule<never, Principal>,
): PartChecker<Principal> {
  if (!schema) return () => undefined
  // Compiled for the first request: most processes serve few of their operations (70 take 150 ms of the application's
  // boot).
  let isValid: ReturnType<typeof compile> | undefined
  const order = Object.keys(propertiesOf(schema))
  return (request, found) => {
    const { values, violations: readViolations, omittedCount = 0 } = read(request, schema)
    isValid ??= compile(schema)
    const errors = values === undefined || isValid(values) ? [] : toFieldErrors(isValid.errors ?? [])
    const reported = new Set(readViolations.map(({ field }) => field))
    const violations = [...readViolations, ...errors.filter(({ field }) => !reported.has(field))]
    if (rule && !violations.some(({ field }) => field === 'body')) {
      const { principal, body } = request
      const valid = withoutFields(values, violations) as Partial<never>
      violations.push(...rule(valid, { principal, bodyText: body.text ?? '', violations }))
    }
    for (const violation of inFieldOrder(violations, order)) found.list.push(violation)
    found.omittedCount += omittedCount
    return lowerCaseUuids(schema, values)
  }
}

/** Reads integers as decimal digits only. A repeated parameter is a violation: we do not pick one of its values. */
function readQuery({ req }: UncheckedRequest<unknown>, schema: TSchema): PartValues {
  const given = parseQuery(req.url)
  const values: Record<string, unknown> = {}
  const violations: FieldError[] = []
  for (const [name, { type, default: defaultValue }] of Object.entries(propertiesOf(schema))) {
    const [value = defaultValue, ...repeated] = given.getAll(name)
    const isInteger = type === 'integer'
    if (repeated.length > 0) {
      violations.push({ field: name, code: isInteger ? 'int_parsing' : 'string_type', message: 'must be given once' })
    } else if (isInteger && typeof value === 'string') {
      if (/^\d+$/.test(value)) values[name] = Number(value)
      else violations.push({ field: name, code: 'int_parsing', message: 'must be a whole number in decimal digits' })
    } else if (value !== undefined) {
      values[name] = value
    }
  }
  return { values, violations }
}

/** @throws URIError when the query is not percent-encoded UTF-8, where URLSearchParams would guess. */
function parseQuery(target: string): URLSearchParams {
  const start = target.indexOf('?')
  const query = start === -1 ? '' : target.slice(start)
  decodeURIComponent(query)
  return new URLSearchParams(query)
}

function readHeaders({ req }: UncheckedRequest<unknown>, schema: TSchema): PartValues {
  const names = Object.keys(propertiesOf(schema))
  const given = names.map((name) => [name, req.headers[name.toLowerCase()]] as const)
  return noViolations(Object.fromEntries(given.filter(([, value]) => value !== undefined)))
}

/** Takes unknown fields out of the body: as errors of ajv, 20,000 of them took 20 to 90 ms of CPU time. */
function readBody(body: unknown, schema: TSchema, trimmed: readonly string[]): PartValues {
  if (body === undefined || body === null) {
    const message = 'is required: send a JSON object'
    return { values: undefined, violations: [{ field: 'body', code: 'missing', message }] }
  }
  if (typeof body !== 'object' || Array.isArray(body)) return noViolations(body)
  const known = propertiesOf(schema)
  const given = body as Record<string, unknown>
  const values: Record<string, unknown> = {}
  const violations: FieldError[] = []
  let omittedCount = 0
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) values[name] = given[name]
    else if (violations.length === ERROR_DETAILS_MAX) omittedCount += 1
    else violations.push({ field: name || 'body', code: 'extra_forbidden', message: 'is not a known field; remove it' })
  }
  for (const name of trimmed) {
    const { [name]: value } = values
    if (typeof value === 'string') values[name] = trimWhiteSpace(value)
  }
  return { values, violations, omittedCount }
}

function noViolations(values: unknown): PartValues {
  return { values, violations: [] }
}

function withoutFields(values: unknown, violations: readonly FieldError[]): unknown {
  if (violations.length === 0) return values
  const fields = new Set(violations.map(({ field }) => field.split('.')[0]))
  return Object.fromEntries(Object.entries(values ?? {}).filter(([name]) => !fields.has(name)))
}

function lowerCaseUuids(schema: TSchema, values: unknown): unknown {
  const lowerCased = values as Record<string, unknown>
  for (const [name, { format }] of Object.entries(propertiesOf(schema))) {
    const value = lowerCased?.[name]
    if (format === 'uuid' && typeof value === 'string') lowerCased[name] = value.toLowerCase()
  }
  return lowerCased
}

interface PropertySchema {
  readonly type?: unknown
  readonly format?: string
  readonly default?: unknown
}

function propertiesOf(schema: TSchema): Record<string, PropertySchema> {
  return (schema as unknown as { properties: Record<string, PropertySchema> }).properties
}

import { compile, type FieldError, type Operation, toFieldErrors, trimWhiteSpace } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import { invalidFields } from '@workflow-service/service-kit'
import type { Request } from 'express'
import type { TSchema } from 'typebox'
import { parseQuery } from './parse-query.ts'

/** A request's parts after they were checked; ids are in lower case, numbers are numbers. */
export interface CheckedRequest {
  readonly params: unknown
  readonly query: unknown
  readonly headers: unknown
  readonly body: unknown
}

interface PropertySchema {
  readonly type?: unknown
  readonly format?: string
}

/** The values that were given for a schema's properties, and what is wrong before the schema is asked. */
interface Given {
  readonly values: unknown
  readonly faults: readonly FieldError[]
  /** There is nothing that the schema could be asked about. */
  readonly isMissing?: boolean
}

/**
 * What no schema can tell of a query, from the parameters that have passed theirs: it depends on who asks. `passed` lacks
 * the faulty ones.
 */
export type QueryRule = (passed: Readonly<Record<string, unknown>>, holder: Principal) => readonly FieldError[]

/**
 * Checks a request by its operation's schemas, and throws all faults at once: path, then query, headers, body, each in
 * its schema's order with unknown fields last (design 5).
 */
export function requestChecker(
  operation: Operation,
  queryRule: QueryRule = () => [],
): (req: Request, holder: Principal) => CheckedRequest {
  const checkParams = partChecker(operation.params, (req, schema) => ({ values: pick(schema, req.params), faults: [] }))
  const checkQuery = partChecker(operation.query, readQuery, queryRule)
  const checkHeaders = partChecker(operation.headers, readHeaders)
  const checkBody = partChecker(operation.body, (req) => readBody(req.body as unknown, operation.trimmed ?? []))
  return (req, holder) => {
    const faults: FieldError[] = []
    const params = checkParams(req, holder, faults)
    const query = checkQuery(req, holder, faults)
    const headers = checkHeaders(req, holder, faults)
    const body = checkBody(req, holder, faults)
    if (faults.length > 0) throw invalidFields(faults)
    return { params, query, headers, body }
  }
}

function partChecker(
  schema: TSchema | undefined,
  read: (req: Request, schema: TSchema) => Given,
  rule: QueryRule = () => [],
): (req: Request, holder: Principal, faults: FieldError[]) => unknown {
  if (!schema) return () => undefined
  const isValid = compile(schema)
  const order = Object.keys(propertiesOf(schema))
  return (req, holder, faults) => {
    const given = read(req, schema)
    const found = given.isMissing || isValid(given.values) ? [] : toFieldErrors(isValid.errors ?? [], order)
    const told = new Set(given.faults.map(({ field }) => field))
    const all = [...given.faults, ...found.filter(({ field }) => !told.has(field))]
    all.push(...rule(without(given.values, all), holder))
    if (all.length === 0) return lowerCaseIds(schema, given.values)
    // What ajv found is in order; the rest has to be put between.
    faults.push(...(all.length === found.length ? all : inOrder(all, order)))
    return undefined
  }
}

function without(values: unknown, faults: readonly FieldError[]): Record<string, unknown> {
  if (faults.length === 0) return values as Record<string, unknown>
  const fields = new Set(faults.map(({ field }) => field))
  return Object.fromEntries(Object.entries(values ?? {}).filter(([name]) => !fields.has(name)))
}

/** Decimal digits only; the value of a parameter that is repeated is nobody's to choose. */
function readQuery(req: Request, schema: TSchema): Given {
  const given = parseQuery(req.url)
  const values: Record<string, unknown> = {}
  const faults: FieldError[] = []
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    const [value, ...more] = given.get(name) ?? []
    const isInteger = property.type === 'integer'
    if (value === undefined) continue
    if (more.length > 0) {
      faults.push({ field: name, code: isInteger ? 'int_parsing' : 'string_type', message: 'must be given once' })
    } else if (!isInteger) {
      values[name] = value
    } else if (/^\d+$/.test(value)) {
      values[name] = Number(value)
    } else {
      faults.push({ field: name, code: 'int_parsing', message: 'must be a whole number in decimal digits' })
    }
  }
  return { values, faults }
}

function readHeaders(req: Request, schema: TSchema): Given {
  const values: Record<string, unknown> = {}
  for (const name of Object.keys(propertiesOf(schema))) {
    const value = req.headers[name.toLowerCase()]
    if (value !== undefined) values[name] = value
  }
  return { values, faults: [] }
}

function readBody(body: unknown, trimmed: readonly string[]): Given {
  if (body === undefined || body === null) {
    const message = 'is required: send a JSON object'
    return { values: undefined, faults: [{ field: 'body', code: 'missing', message }], isMissing: true }
  }
  if (typeof body !== 'object' || Array.isArray(body)) return { values: body, faults: [] }
  const values = body as Record<string, unknown>
  for (const name of trimmed) {
    const value = values[name]
    if (typeof value === 'string') values[name] = trimWhiteSpace(value)
  }
  return { values, faults: [] }
}

function pick(schema: TSchema, values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(propertiesOf(schema)).map((name) => [name, values[name]]))
}

/** Ids are taken in any case and answered in lower case. */
function lowerCaseIds(schema: TSchema, values: unknown): unknown {
  const lowered = values as Record<string, unknown>
  for (const [name, { format }] of Object.entries(propertiesOf(schema))) {
    const value = lowered[name]
    if (format === 'uuid' && typeof value === 'string') lowered[name] = value.toLowerCase()
  }
  return lowered
}

function inOrder(faults: readonly FieldError[], order: readonly string[]): FieldError[] {
  return faults.toSorted((a, b) => order.indexOf(a.field) - order.indexOf(b.field))
}

function propertiesOf(schema: TSchema): Record<string, PropertySchema> {
  return (schema as unknown as { properties: Record<string, PropertySchema> }).properties
}

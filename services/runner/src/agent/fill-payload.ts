import { derivePayloadSchema, type JsonSchema, PAYLOAD_MAX_DEPTH } from '@workflow-service/contract'
import { type Conversion, quote, splitText, toBoolean, toJson, toNumber, toText } from './convert-value.ts'
import { emptyValue, hasType, listProperties, listTypes } from './example-schema.ts'
import { type ContextObject, type ContextValue, isContextObject, parseContext } from './parse-context.ts'

/** A payload in the shape of the example, and where the value of each field came from. */
export interface FilledPayload {
  readonly payload: Record<string, unknown>
  readonly report: FillReport
}

export interface FillReport {
  /** Fields with a value that the context names. */
  readonly named: string[]
  /** Text fields that contain the whole context. */
  readonly wholeContext: string[]
  /** Fields that the context does not name. */
  readonly empty: string[]
  /** Fields left empty because their value in the context cannot be converted to the example's type. */
  readonly unconverted: { readonly field: string; readonly reason: string }[]
}

/** A text field whose name ends with one of these words gets the whole context if the context does not name the field. */
const TEXT_WORDS = new Set(['text', 'message', 'summary', 'content', 'body'])

/**
 * Builds a payload in the shape of the example from the context (contract README, "The built-in agent"). Each field gets
 * the value that the context names, converted to the example's type; otherwise, if it is a text field whose name ends
 * with one of TEXT_WORDS, the whole context; otherwise the empty value of its type. It never gets a value of the example.
 * The same input always gives the same payload.
 */
export function fillPayload(example: Record<string, unknown>, context: string): FilledPayload {
  const schema = derivePayloadSchema(example)
  const report = emptyReport()
  const scope = createScope(schema, parseContext(context), { path: [], report, wholeText: context })
  return { payload: fillObject(scope, schema, []), report }
}

function emptyReport(): FillReport {
  return { named: [], wholeContext: [], empty: [], unconverted: [] }
}

/** Fills one object of the example from one object of the context: the whole payload, or an item of a list. */
interface Scope {
  /** The context's value for the field at this path inside the object; undefined when the context does not name it. */
  readonly find: (path: readonly string[]) => ContextValue | undefined
  readonly position: Position
}

/** The position of an object or value in the payload. */
interface Position {
  readonly path: readonly string[]
  readonly report: FillReport
  /** The text for text fields; null inside lists, where every item would repeat it. */
  readonly wholeText: string | null
}

interface NamedValue {
  readonly path: readonly string[]
  readonly value: ContextValue
}

function createScope(schema: JsonSchema, context: ContextObject, position: Position): Scope {
  const values = listValues(context, [])
  const fieldNames = Map.groupBy(listFieldPaths(schema, []), (path) => lastName(path))
  const valueNames = Map.groupBy(values, ({ path }) => lastName(path))
  const byPath = Map.groupBy(values, ({ path }) => path.map(normalizeName).join(''))
  const find = (path: readonly string[]): ContextValue | undefined => {
    const samePath = byPath.get(path.map(normalizeName).join('')) ?? []
    const best = samePath.find((candidate) => candidate.path.length === path.length) ?? samePath[0]
    if (best) return best.value
    // The same last name at another path: only if no other field or value has it, and one of the two is at the top level.
    const name = lastName(path)
    const [only, ...others] = valueNames.get(name) ?? []
    const isUnambiguous = only && others.length === 0 && fieldNames.get(name)?.length === 1
    return isUnambiguous && (path.length === 1 || only.path.length === 1) ? only.value : undefined
  }
  return { find, position }
}

function fillObject(scope: Scope, schema: JsonSchema, path: readonly string[]): Record<string, unknown> {
  const required = new Set(schema['required'] as string[] | undefined)
  const entries = listProperties(schema).flatMap(([name, field]): [string, unknown][] => {
    const fieldPath = [...path, name]
    const isLeftOut = !required.has(name) && scope.find(fieldPath) === undefined
    return isLeftOut ? [] : [[name, fillField(scope, field, fieldPath)]]
  })
  return Object.fromEntries(entries)
}

function fillField(scope: Scope, schema: JsonSchema, path: readonly string[]): unknown {
  const { report, wholeText } = scope.position
  if (listProperties(schema).length > 0 && schema['type'] === 'object') return fillObject(scope, schema, path)
  const fullPath = [...scope.position.path, ...path]
  const field = fullPath.join('.')
  const found = scope.find(path)
  if (found !== undefined && found !== null && found !== '') {
    const converted = convert(schema, found, { ...scope.position, path: fullPath })
    if ('value' in converted) {
      report.named.push(field)
      return converted.value
    }
    report.unconverted.push({ field, reason: converted.error })
    return emptyValue(schema)
  }
  if (wholeText !== null && wholeText !== '' && found === undefined && isTextField(schema, path)) {
    report.wholeContext.push(field)
    return wholeText
  }
  report.empty.push(field)
  return emptyValue(schema)
}

function convert(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const types = listTypes(schema)
  if (types.length === 0) return toJson(value, position.path.length)
  const sameType = types.find((type) => hasType(value, type))
  const errors: string[] = []
  for (const type of sameType ? [sameType, ...types] : types) {
    const converted = convertTo(type, value, position)
    if ('value' in converted) return converted
    errors.push(converted.error)
  }
  return { error: errors[0] ?? 'does not fit' }
}

function convertTo(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  switch (schema['type']) {
    case 'string':
      return { value: toText(value) }
    case 'number':
      return toNumber(value)
    case 'boolean':
      return toBoolean(value)
    case 'array':
      return toList((schema['items'] as JsonSchema | undefined) ?? {}, value, position)
    case 'object':
      return toObject(schema, value, position)
    default:
      return value === null ? { value: null } : { error: `${quote(value)} is not null` }
  }
}

/** The items of a list, the parts of `a, b` or `a; b`, or the value as the only item. */
function toList(itemSchema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const items = Array.isArray(value) ? value : typeof value === 'string' ? splitText(value) : [value]
  const converted: unknown[] = []
  const report = emptyReport()
  for (const [index, item] of items.entries()) {
    const result = convert(itemSchema, item, { path: [...position.path, String(index)], report, wholeText: null })
    if ('error' in result) return result
    converted.push(result.value)
  }
  position.report.named.push(...report.named)
  position.report.empty.push(...report.empty)
  position.report.unconverted.push(...report.unconverted)
  return { value: converted }
}

function toObject(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  if (!isContextObject(value)) return { error: `${quote(value)} is not an object` }
  if (listProperties(schema).length === 0) return toJson(value, position.path.length)
  return { value: fillObject(createScope(schema, value, { ...position, wholeText: null }), schema, []) }
}

function isTextField(schema: JsonSchema, path: readonly string[]): boolean {
  const [name = ''] = path.slice(-1)
  const words = name.replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ').split(/[^\p{L}\p{N}]+/u)
  return schema['type'] === 'string' && TEXT_WORDS.has(words.findLast((word) => word !== '')?.toLowerCase() ?? '')
}

/** All named values of the context outside lists; an object comes before its members. */
function listValues(context: ContextObject, path: readonly string[]): NamedValue[] {
  if (path.length >= PAYLOAD_MAX_DEPTH) return []
  return Object.entries(context).flatMap(([name, value]) => {
    const named = { path: [...path, name], value }
    return isContextObject(value) ? [named, ...listValues(value, named.path)] : [named]
  })
}

function listFieldPaths(schema: JsonSchema, path: readonly string[]): string[][] {
  return listProperties(schema).flatMap(([name, field]) => [[...path, name], ...listFieldPaths(field, [...path, name])])
}

function lastName(path: readonly string[]): string {
  return normalizeName(path.at(-1) ?? '')
}

/** Normalizes a name, so that `customerName`, `customer_name`, `Customer name` and `CUSTOMER-NAME` are equal. */
function normalizeName(name: string): string {
  // Most names are ASCII; the Unicode path takes ten times as long.
  const folded = /^[ -~]*$/.test(name)
    ? name.toLowerCase().replace(/[^a-z0-9]+/g, '')
    : name
        .normalize('NFKC')
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}]+/gu, '')
  return folded === '' ? name : folded
}

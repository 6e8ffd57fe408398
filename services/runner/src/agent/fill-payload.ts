import { isStorableText, type JsonSchema, PAYLOAD_MAX_DEPTH, derivePayloadSchema } from '@workflow-service/contract'
import { type ContextObject, type ContextValue, isContextObject, NumberText, parseContext } from './parse-context.ts'

/** A payload of the example's shape and, field by field, where each value came from. */
export interface FilledPayload {
  readonly payload: Record<string, unknown>
  readonly report: FillReport
}

export interface FillReport {
  /** Fields that the context names. */
  readonly named: string[]
  /** Text fields that got the whole context. */
  readonly wholeContext: string[]
  /** Fields of which the context says nothing. */
  readonly empty: string[]
  /** Fields that the context names with a value that does not become the example's type; they are left empty. */
  readonly unconverted: { readonly field: string; readonly reason: string }[]
}

/** The last word of a name that makes an unfilled text field take the whole context (design section 6). */
const TEXT_WORDS = new Set(['text', 'message', 'summary', 'content', 'body'])

/**
 * Builds a payload for the example out of the context, the same for the same input (design section 6, `builtin`). Field
 * by field: what the context names so, converted to the example's type; else, for a text field named like text, message,
 * summary, content or body, the whole context; else the empty value of the type. Never a value of the example.
 */
export function fillPayload(example: Record<string, unknown>, context: string): FilledPayload {
  const schema = derivePayloadSchema(example)
  const report = emptyReport()
  const scope = createScope(schema, parseContext(context), { prefix: [], report, wholeText: context })
  return { payload: fillObject(scope, schema, []), report }
}

function emptyReport(): FillReport {
  return { named: [], wholeContext: [], empty: [], unconverted: [] }
}

/** An object of the example beside the object of the context that it is filled from: the whole, or an item of a list. */
interface Scope {
  /** What the context says at the place of this field; undefined when it says nothing. */
  readonly find: (path: readonly string[]) => ContextValue | undefined
  readonly at: ScopePlace
}

interface ScopePlace {
  /** Where the object stands in the payload. */
  readonly prefix: readonly string[]
  readonly report: FillReport
  /** The text for text fields; null within lists, where every item would repeat it. */
  readonly wholeText: string | null
}

interface NamedValue {
  readonly path: readonly string[]
  readonly value: ContextValue
}

function createScope(schema: JsonSchema, context: ContextObject, at: ScopePlace): Scope {
  const values = listValues(context, [])
  const fieldNames = Map.groupBy(listFieldPaths(schema, []), (path) => lastName(path))
  const valueNames = Map.groupBy(values, ({ path }) => lastName(path))
  const byPath = Map.groupBy(values, ({ path }) => path.map(foldName).join(''))
  const find = (path: readonly string[]): ContextValue | undefined => {
    const samePlace = byPath.get(path.map(foldName).join('')) ?? []
    const best = samePlace.find((candidate) => candidate.path.length === path.length) ?? samePlace[0]
    if (best) return best.value
    // The same name in another place: only where nothing else can be meant, and one of the two places is the top.
    const name = lastName(path)
    const [only, ...others] = valueNames.get(name) ?? []
    const isUnmistakable = only && others.length === 0 && fieldNames.get(name)?.length === 1
    return isUnmistakable && (path.length === 1 || only.path.length === 1) ? only.value : undefined
  }
  return { find, at }
}

function fillObject(scope: Scope, schema: JsonSchema, path: readonly string[]): Record<string, unknown> {
  const required = new Set(schema['required'] as string[] | undefined)
  const entries = propertiesOf(schema).flatMap(([name, field]): [string, unknown][] => {
    const fieldPath = [...path, name]
    const isLeftOut = !required.has(name) && scope.find(fieldPath) === undefined
    return isLeftOut ? [] : [[name, fillField(scope, field, fieldPath)]]
  })
  return Object.fromEntries(entries)
}

function fillField(scope: Scope, schema: JsonSchema, path: readonly string[]): unknown {
  const { report, prefix, wholeText } = scope.at
  if (propertiesOf(schema).length > 0 && schema['type'] === 'object') return fillObject(scope, schema, path)
  const field = [...prefix, ...path].join('.')
  const found = scope.find(path)
  if (found !== undefined && found !== null && found !== '') {
    const converted = convert(schema, found, { ...scope.at, prefix: [...prefix, ...path] })
    if ('value' in converted) {
      report.named.push(field)
      return converted.value
    }
    report.unconverted.push({ field, reason: converted.fault })
    return emptyValue(schema)
  }
  if (wholeText !== null && wholeText !== '' && found === undefined && isTextField(schema, path)) {
    report.wholeContext.push(field)
    return wholeText
  }
  report.empty.push(field)
  return emptyValue(schema)
}

type Converted = { readonly value: unknown } | { readonly fault: string }

function convert(schema: JsonSchema, value: ContextValue, at: ScopePlace): Converted {
  const types = alternativesOf(schema)
  if (types.length === 0) return toPlain(value, at.prefix.length)
  const natural = types.find((type) => isNaturally(type, value))
  const faults: string[] = []
  for (const type of natural ? [natural, ...types] : types) {
    const converted = convertTo(type, value, at)
    if ('value' in converted) return converted
    faults.push(converted.fault)
  }
  return { fault: faults[0] ?? 'does not fit' }
}

function convertTo(schema: JsonSchema, value: ContextValue, at: ScopePlace): Converted {
  switch (schema['type']) {
    case 'string':
      return { value: toText(value) }
    case 'number':
      return toNumber(value)
    case 'boolean':
      return toBoolean(value)
    case 'array':
      return toList((schema['items'] as JsonSchema | undefined) ?? {}, value, at)
    case 'object':
      return toObject(schema, value, at)
    default:
      return value === null ? { value: null } : { fault: `${quote(value)} is not null` }
  }
}

function toText(value: ContextValue): string {
  if (typeof value === 'string')
    return isStorableText(value) ? value : value.toWellFormed().replaceAll('\u0000', '\uFFFD')
  if (value instanceof NumberText) return value.source
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object' || item instanceof NumberText)) {
    return value.map(toText).join(', ')
  }
  return toText(
    JSON.stringify(value, (_name, item: unknown) => (item instanceof NumberText ? Number(item.source) : item)),
  )
}

/** A plain number, if need be with a currency beside it: `$ 12.50`, `12.50 EUR`. Never a guess at separators. */
const NUMBER = /^(?:\p{Sc}|[A-Z]{3})?\s*(?<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?:\p{Sc}|[A-Z]{3})?$/u

function toNumber(value: ContextValue): Converted {
  const text = value instanceof NumberText ? value.source : value
  const digits = typeof text === 'string' ? NUMBER.exec(text.trim())?.groups?.['number'] : undefined
  if (digits === undefined) return { fault: `${quote(value)} is not a number` }
  const number = Number(digits)
  if (!Number.isFinite(number)) return { fault: `${quote(value)} is too large for a number` }
  if (Number.isInteger(number) && !Number.isSafeInteger(number) && /^[+-]?\d+$/u.test(digits)) {
    return { fault: `${quote(value)} has more digits than a number keeps` }
  }
  return { value: number === 0 ? 0 : number }
}

function toBoolean(value: ContextValue): Converted {
  const word = toText(value).trim().toLowerCase()
  if (['true', 'yes', 'y', 'on', '1'].includes(word)) return { value: true }
  if (['false', 'no', 'n', 'off', '0'].includes(word)) return { value: false }
  return { fault: `${quote(value)} is neither true nor false` }
}

/** A list, the parts of `a, b` (or `a; b`), or the one value alone. */
function toList(itemSchema: JsonSchema, value: ContextValue, at: ScopePlace): Converted {
  const items = Array.isArray(value) ? value : typeof value === 'string' ? splitText(value) : [value]
  const converted: unknown[] = []
  const report = emptyReport()
  for (const [index, item] of items.entries()) {
    const result = convert(itemSchema, item, { prefix: [...at.prefix, String(index)], report, wholeText: null })
    if ('fault' in result) return result
    converted.push(result.value)
  }
  at.report.named.push(...report.named)
  at.report.empty.push(...report.empty)
  at.report.unconverted.push(...report.unconverted)
  return { value: converted }
}

function splitText(text: string): string[] {
  const parts = text.split(text.includes(';') ? ';' : ',').map((part) => part.trim())
  return parts.filter((part) => part !== '')
}

function toObject(schema: JsonSchema, value: ContextValue, at: ScopePlace): Converted {
  if (!isContextObject(value)) return { fault: `${quote(value)} is not an object` }
  if (propertiesOf(schema).length === 0) return toPlain(value, at.prefix.length)
  return { value: fillObject(createScope(schema, value, { ...at, wholeText: null }), schema, []) }
}

/** The value as plain JSON, for where the example does not say what it should be; `depth` levels stand above it. */
function toPlain(value: ContextValue, depth: number): Converted {
  if (typeof value === 'string') return { value: toText(value) }
  if (value instanceof NumberText) {
    const number = toNumber(value)
    return 'value' in number ? number : { value: value.source }
  }
  if (typeof value !== 'object' || value === null) return { value }
  if (depth >= PAYLOAD_MAX_DEPTH) return { fault: `it makes the payload more than ${PAYLOAD_MAX_DEPTH} levels deep` }
  const entries: [string, unknown][] = []
  for (const [name, item] of Object.entries(value)) {
    const plain = toPlain(item, depth + 1)
    if ('fault' in plain) return plain
    if (name !== '__proto__') entries.push([toText(name), plain.value])
  }
  return { value: Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries) }
}

/** Null where the example has it, else the plainest of the types. */
function emptyValue(schema: JsonSchema): unknown {
  const types = new Map(alternativesOf(schema).map((type) => [type['type'], type]))
  if (types.size === 0 || types.has('null')) return null
  if (types.has('string')) return ''
  if (types.has('number')) return 0
  if (types.has('boolean')) return false
  if (types.has('array')) return []
  const object = types.get('object') ?? {}
  const required = new Set(object['required'] as string[] | undefined)
  const fields = propertiesOf(object).filter(([name]) => required.has(name))
  return Object.fromEntries(fields.map(([name, field]) => [name, emptyValue(field)]))
}

/** The schema's types, one schema each; none means that anything goes. */
function alternativesOf(schema: JsonSchema): JsonSchema[] {
  const alternatives = (schema['anyOf'] as JsonSchema[] | undefined) ?? [schema]
  return alternatives.flatMap((alternative) => {
    const type = alternative['type'] as string | string[] | undefined
    if (type === undefined) return []
    return Array.isArray(type) ? type.map((name) => ({ type: name })) : [alternative]
  })
}

function isNaturally(schema: JsonSchema, value: ContextValue): boolean {
  switch (schema['type']) {
    case 'string':
      return typeof value === 'string'
    case 'number':
      return value instanceof NumberText
    case 'boolean':
      return typeof value === 'boolean'
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isContextObject(value)
    default:
      return value === null
  }
}

function isTextField(schema: JsonSchema, path: readonly string[]): boolean {
  const [name = ''] = path.slice(-1)
  const words = name.replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ').split(/[^\p{L}\p{N}]+/u)
  return schema['type'] === 'string' && TEXT_WORDS.has(words.findLast((word) => word !== '')?.toLowerCase() ?? '')
}

/** Every named place of the context outside lists, objects before what is in them. */
function listValues(context: ContextObject, path: readonly string[]): NamedValue[] {
  if (path.length >= PAYLOAD_MAX_DEPTH) return []
  return Object.entries(context).flatMap(([name, value]) => {
    const here = { path: [...path, name], value }
    return isContextObject(value) ? [here, ...listValues(value, here.path)] : [here]
  })
}

function listFieldPaths(schema: JsonSchema, path: readonly string[]): string[][] {
  return propertiesOf(schema).flatMap(([name, field]) => [[...path, name], ...listFieldPaths(field, [...path, name])])
}

function propertiesOf(schema: JsonSchema): [string, JsonSchema][] {
  return Object.entries((schema['properties'] as Record<string, JsonSchema> | undefined) ?? {})
}

function lastName(path: readonly string[]): string {
  return foldName(path.at(-1) ?? '')
}

/** What `customerName`, `customer_name`, `Customer name` and `CUSTOMER-NAME` have in common. */
function foldName(name: string): string {
  // Most names are ASCII, for which the Unicode tables cost ten times as much.
  const folded = /^[ -~]*$/.test(name)
    ? name.toLowerCase().replace(/[^a-z0-9]+/g, '')
    : name
        .normalize('NFKC')
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}]+/gu, '')
  return folded === '' ? name : folded
}

function quote(value: ContextValue): string {
  const text = toText(value)
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40).toWellFormed()}…` : text)
}

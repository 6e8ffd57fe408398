import {
  countJsonBytes,
  derivePayloadSchema,
  type JsonSchema,
  PAYLOAD_MAX_BYTES,
  PAYLOAD_MAX_DEPTH,
} from '@workflow-service/contract'
import { type Conversion, describeValue, splitText, toBoolean, toJson, toNumber, toText } from './convert-value.ts'
import { type ExampleField, type ExampleLevel, type ExampleObject, readLevel } from './example-level.ts'
import { emptyValue, hasType, listTypes } from './example-schema.ts'
import { type FillReport, FillState } from './fill-state.ts'
import { normalizeName } from './normalize-name.ts'
import { type ContextObject, type ContextValue, isContextObject, parseContext } from './parse-context.ts'

/** A payload in the shape of the example, and where the value of each field came from. */
export interface FilledPayload {
  readonly payload: Record<string, unknown>
  /** The size of its JSON in UTF-8. */
  readonly bytes: number
  readonly report: FillReport
}

/**
 * Builds a payload in the shape of the example from the context (contract README, "The built-in agent"). Each field gets
 * the value that the context names, converted to the example's type; otherwise, if it is a text field whose name ends
 * with one of TEXT_WORDS, the whole context; otherwise the empty value of its type. It never gets a value of the example.
 * The same input always gives the same payload.
 * @throws PayloadTooLargeError as soon as the payload has more than `maxBytes` or PAYLOAD_MAX_VALUES values.
 */
export function fillPayload(
  example: Record<string, unknown>,
  context: string,
  maxBytes = PAYLOAD_MAX_BYTES,
): FilledPayload {
  const fill = new FillState(maxBytes)
  const schema = derivePayloadSchema(example)
  const wholeText = context === '' ? null : { text: context, bytes: countJsonBytes(context) }
  const payload = fillLevel(schema, parseContext(context), { path: [], wholeText, fill })
  return { payload, bytes: fill.bytes, report: fill.report }
}

/** The position of an object or value in the payload. */
interface Position {
  readonly path: readonly string[]
  readonly fill: FillState
  /** The text for text fields; null inside lists, where every item would repeat it. */
  readonly wholeText: { readonly text: string; readonly bytes: number } | null
}

/** Fills one object of the example from one object of the context: the whole payload, or an item of a list. */
interface Scope {
  readonly level: ExampleLevel
  /** The values by their path, and then by the number of names in it: the first of each. */
  readonly byKey: ReadonlyMap<string, ReadonlyMap<number, ContextValue>>
  /** The first value of each last name, and how many there are. */
  readonly byLastName: ReadonlyMap<string, { readonly value: ContextValue; readonly depth: number; count: number }>
  readonly position: Position
}

function fillLevel(schema: JsonSchema, context: ContextObject, position: Position): Record<string, unknown> {
  const level = position.fill.levels.get(schema, readLevel)
  const byKey = new Map<string, Map<number, ContextValue>>()
  const byLastName = new Map<string, { value: ContextValue; depth: number; count: number }>()
  addValues(context, '', 1)
  return fillObject({ level, byKey, byLastName, position }, level.object)

  /** Adds all named values of the context outside lists; an object comes before its members. */
  function addValues(values: ContextObject, parentKey: string, depth: number): void {
    if (depth > PAYLOAD_MAX_DEPTH) return
    for (const [name, value] of Object.entries(values)) {
      const lastName = normalizeName(name)
      const key = parentKey + lastName
      const sameKey = byKey.get(key)
      if (!sameKey) byKey.set(key, new Map([[depth, value]]))
      else if (!sameKey.has(depth)) sameKey.set(depth, value)
      const sameName = byLastName.get(lastName)
      if (sameName) sameName.count += 1
      else byLastName.set(lastName, { value, depth, count: 1 })
      if (isContextObject(value)) addValues(value, key, depth + 1)
    }
  }
}

/** The context's value for the field; undefined when the context does not name it. */
function findValue(
  { level, byKey, byLastName }: Scope,
  { key, lastName, path }: ExampleField,
): ContextValue | undefined {
  const samePath = byKey.get(key)
  if (samePath) {
    const [first] = samePath.values()
    return samePath.has(path.length) ? samePath.get(path.length) : first
  }
  // The same last name at another path: only if no other field or value has it, and one of the two is at the top level.
  const named = byLastName.get(lastName)
  const isUnambiguous = named?.count === 1 && level.fieldCounts.get(lastName) === 1
  return isUnambiguous && (path.length === 1 || named.depth === 1) ? named.value : undefined
}

function fillObject(scope: Scope, object: ExampleObject): Record<string, unknown> {
  const { fill } = scope.position
  fill.addValue(2)
  const entries: [string, unknown][] = []
  for (const field of selectFields(scope, object)) {
    fill.addBytes(field.nameBytes + (entries.length === 0 ? 1 : 2))
    entries.push([field.name, field.object ? fillObject(scope, field.object) : fillField(scope, field)])
  }
  return Object.fromEntries(entries)
}

/**
 * The required fields, and the optional ones that the context names, in the order of the example. Looks at the optional
 * fields or at the context's values, whichever are fewer: a list can have thousands of items without any.
 */
function selectFields(
  scope: Scope,
  { fields, required, optional, optionalByName }: ExampleObject,
): readonly ExampleField[] {
  if (optional.length === 0) return fields
  const { byKey, byLastName } = scope
  const candidates =
    optional.length <= byKey.size + byLastName.size
      ? optional
      : [...byKey.keys(), ...byLastName.keys()].flatMap((name) => optionalByName.get(name) ?? [])
  const found = new Set(candidates.filter((field) => findValue(scope, field) !== undefined))
  return found.size === 0 ? required : fields.filter((field) => field.isRequired || found.has(field))
}

function fillField(scope: Scope, field: ExampleField): unknown {
  const { path: levelPath, fill, wholeText } = scope.position
  const path = [...levelPath, ...field.path]
  const found = findValue(scope, field)
  if (found !== undefined && found !== null && found !== '') {
    const mark = fill.mark()
    const converted = convert(field.schema, found, { ...scope.position, path })
    if ('value' in converted) {
      fill.report.named.add(path)
      return converted.value
    }
    fill.rollBack(mark)
    fill.report.unconverted.add(path, converted.error)
    return addEmptyValue(field.schema, fill)
  }
  if (wholeText && found === undefined && field.isText) {
    fill.report.wholeContext.add(path)
    fill.addValue(wholeText.bytes)
    return wholeText.text
  }
  fill.report.empty.add(path)
  return addEmptyValue(field.schema, fill)
}

function addEmptyValue(schema: JsonSchema, fill: FillState): unknown {
  const { json, values } = fill.emptyValues.get(schema, () => {
    const value = emptyValue(schema)
    return { json: JSON.stringify(value), values: countValues(value) }
  })
  fill.addValue(Buffer.byteLength(json), values)
  return JSON.parse(json)
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, item) => sum + countValues(item), 1)
}

/** On an error, what was added to the position's FillState has to be rolled back. */
function convert(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const types = listTypes(schema)
  if (types.length === 0) return addJson(value, position)
  const sameType = types.find((type) => hasType(value, type))
  let error: string | undefined
  // Each type once: trying the same one twice at every level of nested lists doubled the time with each level.
  for (const type of sameType ? [sameType, ...types.filter((other) => other !== sameType)] : types) {
    const mark = position.fill.mark()
    const converted = convertTo(type, value, position)
    if ('value' in converted) return converted
    position.fill.rollBack(mark)
    error ??= converted.error
  }
  return { error: error ?? 'does not fit' }
}

function convertTo(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  switch (schema['type']) {
    case 'string':
      return addPlain({ value: toText(value) }, position)
    case 'number':
      return addPlain(toNumber(value), position)
    case 'boolean':
      return addPlain(toBoolean(value), position)
    case 'array':
      return toList((schema['items'] as JsonSchema | undefined) ?? {}, value, position)
    case 'object':
      return toObject(schema, value, position)
    default:
      return addPlain(value === null ? { value } : { error: `${describeValue(value)} is not null` }, position)
  }
}

/** Counts an attempt to convert a value to a string, number, boolean or null, and the bytes of its result. */
function addPlain(conversion: Conversion, { fill }: Position): Conversion {
  fill.addValue('value' in conversion ? countJsonBytes(conversion.value) : 0)
  return conversion
}

/** Takes the value as it is, where the example allows any value or any field. */
function addJson(value: ContextValue, { fill, path }: Position): Conversion {
  const conversion = toJson(value, path.length, () => fill.addValue(0))
  if ('value' in conversion) fill.addBytes(Buffer.byteLength(JSON.stringify(conversion.value)))
  return conversion
}

/** The items of a list, the parts of `a, b` or `a; b`, or the value as the only item. */
function toList(itemSchema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const { fill } = position
  const items = Array.isArray(value) ? value : typeof value === 'string' ? fill.parts.get(value, splitText) : [value]
  const converted: unknown[] = []
  fill.addValue(2)
  for (const [index, item] of items.entries()) {
    if (index > 0) fill.addBytes(1)
    const result = convert(itemSchema, item, { fill, path: [...position.path, String(index)], wholeText: null })
    if ('error' in result) return result
    converted.push(result.value)
  }
  return { value: converted }
}

function toObject(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  if (!isContextObject(value)) return addPlain({ error: `${describeValue(value)} is not an object` }, position)
  if (position.fill.levels.get(schema, readLevel).object.fields.length === 0) return addJson(value, position)
  return { value: fillLevel(schema, value, { ...position, wholeText: null }) }
}

import { PAYLOAD_MAX_BYTES, PAYLOAD_MAX_VALUES, WHOLE_CONTEXT } from '@workflow-service/contract'
import {
  allowsAnyField,
  allowsAnyValue,
  inferShape,
  type ObjectShape,
  type PayloadShape,
  readIsoDate,
} from '@workflow-service/contract/payload-shape'
import {
  type ContextObject,
  type ContextValue,
  type Conversion,
  describeValue,
  NumberText,
  toBoolean,
  toNumber,
} from '@workflow-service/rules/convert-value'
import { foldName } from './fold-name.ts'
import { PlanError } from './plan-error.ts'
import { isContextObject } from '../context-values.ts'
import { parseStructure, type ReadContext } from './read-context.ts'

/** All payloads of a run together: the plan is one write to the journal. */
export const RUN_MAX_BYTES = 4 * 1024 * 1024

/**
 * A payload, and why it must not be sent: fields without a value, and those whose value cannot be used. Each list names
 * at most 20.
 */
export interface FilledPayload {
  readonly payload: Record<string, unknown>
  readonly missing: readonly string[]
  readonly unusable: readonly { readonly field: string; readonly reason: string }[]
}

const LISTED_FIELDS = 20

/**
 * Builds the payload that the context gives for the example (contract README, "The built-in agent"). Each field gets
 * the value at its own path. Without one it is `null` if the example holds null there, and else missing: no field is
 * left empty.
 * @throws PlanError `delivery_invalid` before a payload exceeds a limit.
 */
export function fillPayload(example: Record<string, unknown>, context: ReadContext): FilledPayload {
  const filler = new Filler()
  const shape = inferShape(example)
  const payload = shape.object ? filler.fillObject(shape.object, toScope(shape, context)) : {}
  if ('json' in context && !isContextObject(context.json)) filler.refuse('a list, whose items a rules.yaml reads')
  return { payload, missing: filler.missing, unusable: filler.unusable }
}

/** The value of a field, or why it cannot be used; undefined if there is none. */
type Found = Conversion<ContextValue> | undefined

/**
 * Where the values of an object's fields are: an object of JSON, or the lines of a text, which have whole paths as
 * names.
 */
type Scope = { readonly object: ContextObject } | { readonly findLine: (path: string) => Found }

function toScope(shape: PayloadShape, context: ReadContext): Scope {
  if ('json' in context) return { object: isContextObject(context.json) ? context.json : {} }
  const paths = Map.groupBy(listPaths(shape), foldName)
  return {
    findLine(path) {
      const line = context.lines.get(foldName(path))
      const [first, second] = paths.get(foldName(path)) ?? []
      if (line && second !== undefined) return { error: `${first} and ${second} are one name in a text; use JSON` }
      if (line && line.values.length > 1) return { error: `${JSON.stringify(line.name)} has different values` }
      const [text = ''] = line?.values ?? []
      return text === '' ? undefined : { value: text }
    },
  }
}

/** The paths of all fields that hold values, without those of list items: `customer.name`, `lines`. */
export function listPaths({ object }: PayloadShape, path = ''): string[] {
  return Array.from(object?.fields ?? [], ([name, field]) => {
    return hasFields(field) ? listPaths(field, `${path}${name}.`) : [`${path}${name}`]
  }).flat()
}

function hasFields(shape: PayloadShape): shape is PayloadShape & { object: ObjectShape } {
  return shape.object !== null && !allowsAnyField(shape.object)
}

class Filler {
  readonly missing: string[] = []
  readonly unusable: { field: string; reason: string }[] = []
  #values = 0
  #length = 0
  /** The path of the value that is being filled. */
  readonly #path: string[] = []

  fillObject(shape: ObjectShape, scope: Scope): Record<string, unknown> {
    if (allowsAnyField(shape)) return 'object' in scope ? (this.#copy(scope.object) as Record<string, unknown>) : {}
    const findLine = (_name: string, field: PayloadShape): Found =>
      hasFields(field) || 'object' in scope ? undefined : scope.findLine(this.#path.join('.'))
    const find = 'object' in scope ? searchObject(scope.object, shape) : findLine
    const payload: Record<string, unknown> = {}
    for (const [name, field] of shape.fields) {
      this.#count(name.length)
      this.#path.push(name)
      const value = this.#fillField(name, { field, shape, scope, find })
      this.#path.pop()
      if (value !== undefined) payload[name] = value
    }
    return payload
  }

  #fillField(
    name: string,
    { field, shape, scope, find }: { field: PayloadShape; shape: ObjectShape; scope: Scope; find: Find },
  ): unknown {
    const isJson = 'object' in scope
    const found = find(name, field)
    // Many programs write null for what an object does not have.
    const isAbsent = !found || ('value' in found && found.value === null && !field.scalars.has('null'))
    if (!isAbsent) return 'error' in found ? this.refuse(found.error) : this.#convert(field, found.value, !isJson)
    if (!shape.required.has(name)) return undefined
    if (field.scalars.has('null')) return null
    // The fields of an object that is missing are what the context lacks. In lines they have names of their own.
    return hasFields(field) ? this.fillObject(field.object, isJson ? { object: {} } : scope) : this.#miss()
  }

  /** The value of a field in JSON; undefined if it is refused. `isLine`: the value is the text of a line. */
  #convert(shape: PayloadShape, value: ContextValue, isLine = false): unknown {
    if (allowsAnyValue(shape)) return this.#copy(value)
    const { object, list, scalars } = shape
    if (value === null) return scalars.has('null') ? null : this.#miss()
    if (isContextObject(value) && object) return this.fillObject(object, { object: value })
    this.#count(typeof value === 'string' ? value.length : 0)
    if (Array.isArray(value) && list) return this.#convertItems(list, value)
    if (typeof value === 'string' && scalars.has('string')) {
      const isFitting = !shape.isDate || value === '' || readIsoDate(value) !== undefined
      return isFitting ? value : this.refuse(`${describeValue(value)} is no date such as 2026-01-31`)
    }
    // A line can hold a list in JSON.
    const parsed = isLine && typeof value === 'string' && (list ?? object) ? parseStructure(value) : undefined
    if (parsed !== undefined) return this.#convert(shape, parsed)
    const isNumber = scalars.has('number') || scalars.has('integer')
    const tried = [...(isNumber ? [toNumber(value)] : []), ...(scalars.has('boolean') ? [toBoolean(value)] : [])]
    const converted = tried.find((result) => 'value' in result) ?? tried[0]
    if (converted && 'value' in converted) return converted.value
    const expected = object ? 'an object' : list ? 'a list, which only JSON has' : 'a text'
    return this.refuse(converted?.error ?? `${describeValue(value)} is not ${expected}`)
  }

  #convertItems(shape: PayloadShape, items: readonly ContextValue[]): unknown[] {
    // Counting first takes a hundredth of the time in which a payload that is too large would be built.
    const fields = shape.object ? shape.object.fields.size * items.filter(isContextObject).length : 0
    if (this.#values + fields > PAYLOAD_MAX_VALUES) throw tooLarge()
    return items.map((item, index) => {
      this.#path.push(String(index))
      const value = this.#convert(shape, item)
      this.#path.pop()
      return value
    })
  }

  /** The value as it is in the context. */
  #copy(value: ContextValue): unknown {
    this.#count(typeof value === 'string' ? value.length : 0)
    if (value instanceof NumberText) {
      const number = toNumber(value)
      return 'value' in number ? number.value : this.refuse(number.error)
    }
    if (Array.isArray(value)) return value.map((item) => this.#copy(item))
    if (!isContextObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.#copy(item)]))
  }

  #miss(): undefined {
    if (this.missing.length < LISTED_FIELDS) this.missing.push(this.#path.join('.'))
  }

  refuse(reason: string): undefined {
    const field = this.#path.join('.') || WHOLE_CONTEXT
    if (this.unusable.length < LISTED_FIELDS) this.unusable.push({ field, reason })
  }

  /** Bounds the memory of a payload that could not be sent: the items of a list repeat the names of the example. */
  #count(length: number): void {
    this.#values += 1
    this.#length += length
    if (this.#values > PAYLOAD_MAX_VALUES || this.#length > PAYLOAD_MAX_BYTES) throw tooLarge()
  }
}

function tooLarge(): PlanError {
  const limits = `${PAYLOAD_MAX_VALUES.toLocaleString('en')} values or ${PAYLOAD_MAX_BYTES / 1024} KiB`
  return new PlanError('delivery_invalid', `Nothing was sent: a payload would have more than ${limits}`)
}

/** The folded names of an object's fields, and the fields of each. All objects of a list share them. */
const foldedFields = new WeakMap<ObjectShape, ReturnType<typeof foldFields>>()

function foldFields({ fields }: ObjectShape) {
  const foldOf = new Map(Array.from(fields.keys(), (name) => [name, foldName(name)]))
  return { foldOf, byFold: Map.groupBy(foldOf.keys(), (name) => foldOf.get(name) ?? name) }
}

type Find = (name: string, field: PayloadShape) => Found

/** Finds the value of the name itself, or else of one that differs in case, separators or accents and is no field. */
function searchObject(object: ContextObject, shape: ObjectShape): Find {
  const others = Object.keys(object).filter((name) => !shape.fields.has(name))
  const othersByFold = others.length > 0 ? Map.groupBy(others, foldName) : undefined
  return (name) => {
    if (Object.hasOwn(object, name)) return { value: object[name] ?? null }
    if (!othersByFold) return undefined
    const folded = foldedFields.get(shape) ?? foldFields(shape)
    foldedFields.set(shape, folded)
    const fold = folded.foldOf.get(name) ?? name
    const names = othersByFold.get(fold) ?? []
    const [first] = names
    if (first === undefined) return undefined
    const twins = folded.byFold.get(fold) ?? []
    if (twins.length > 1)
      return { error: `${twins.join(' and ')} are alike, so that the context must have these names` }
    const values = new Set(names.map((other) => JSON.stringify(object[other])))
    if (values.size > 1) return { error: `${JSON.stringify(names).slice(0, 200).toWellFormed()} have different values` }
    return { value: object[first] ?? null }
  }
}

/** Says in the journal where the values of a payload came from. */
export function formatFilled(payload: Record<string, unknown>): string {
  const fields = Object.keys(payload).map((name) => name.slice(0, 200).toWellFormed())
  const more = fields.length > LISTED_FIELDS ? ` and ${fields.length - LISTED_FIELDS} more` : ''
  return fields.length === 0
    ? 'the example has no fields'
    : `filled by name: ${fields.slice(0, LISTED_FIELDS).join(', ')}${more}`
}

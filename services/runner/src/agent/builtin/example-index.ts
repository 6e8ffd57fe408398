import { derivePayloadSchema, type JsonSchema } from '@workflow-service/contract'
import { LRUCache } from 'lru-cache'
import type { TextKind } from './convert-value.ts'
import { type ExampleField, type ExampleLevel, readLevel } from './example-level.ts'
import { collectSamples, type Samples, textKindOf } from './example-samples.ts'
import { emptyValue } from './example-schema.ts'

/** The empty value of a field, as JSON, and the number of values in it. */
export interface EmptyValue {
  readonly json: string
  readonly values: number
}

/** What filling a payload needs to know of an example. Each part is computed when it is first needed. */
export interface ExampleIndex {
  readonly schema: JsonSchema
  readonly level: (schema: JsonSchema) => ExampleLevel
  readonly emptyValue: (schema: JsonSchema) => EmptyValue
  readonly textKind: (schema: JsonSchema) => TextKind
  readonly samples: (schema: JsonSchema) => Samples | undefined
  /** Whether the example's value of the field looks like an identifier: it has a digit and no space. */
  readonly isIdentifier: (field: ExampleField) => boolean
}

/** By the JSON of the example, at most 256 KiB of it together: an index takes up to 100 times as much memory as the JSON. */
const cache = new LRUCache<string, ExampleIndex>({ maxSize: 256 * 1024, sizeCalculation: (_, json) => json.length })

/** Returns the index of an example. Most runs have the example of an earlier one. */
export function indexExample(example: Record<string, unknown>): ExampleIndex {
  const json = JSON.stringify(example)
  const known = cache.get(json)
  if (known) return known
  const index = createIndex(example)
  cache.set(json, index)
  return index
}

function createIndex(example: Record<string, unknown>): ExampleIndex {
  const schema = derivePayloadSchema(example)
  const samples = collectSamples(schema, example)
  return {
    schema,
    level: memoize(readLevel),
    emptyValue: memoize((field) => {
      const value = emptyValue(field)
      return { json: JSON.stringify(value), values: countValues(value) }
    }),
    textKind: memoize((field) => textKindOf(samples.get(field))),
    samples: (field) => samples.get(field),
    isIdentifier: (field) => {
      const { texts = [], numbers = [] } = samples.get(field.schema) ?? {}
      return texts.length + numbers.length > 0 && texts.every((text) => /^\S*\d\S*$/.test(text))
    },
  }
}

/** Remembers results by argument. */
export function memoize<Argument, Result>(compute: (argument: Argument) => Result): (argument: Argument) => Result {
  const results = new Map<Argument, Result>()
  return (argument) => {
    const known = results.get(argument)
    if (known !== undefined) return known
    const result = compute(argument)
    results.set(argument, result)
    return result
  }
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, item) => sum + countValues(item), 1)
}

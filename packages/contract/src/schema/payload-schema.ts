import { allowsAnyField, allowsAnyValue, inferShape, type ObjectShape } from './payload-shape.ts'
import type { PayloadShape, ScalarType } from './payload-shape.ts'

/** A JSON Schema (2020-12) as plain data. */
export type JsonSchema = Record<string, unknown>

/**
 * Derives the JSON Schema of every payload from the example (contract README, "Webhook sources").
 * `findPayloadMismatches` checks the same, and also what a schema cannot express: depth, Unicode text, reserved names.
 */
export function derivePayloadSchema(example: Record<string, unknown>): JsonSchema {
  return toSchema(inferShape(example))
}

function toSchema(shape: PayloadShape): JsonSchema {
  if (allowsAnyValue(shape)) return {}
  const schemas: JsonSchema[] = []
  if (shape.object) schemas.push(toObjectSchema(shape.object))
  if (shape.list) schemas.push({ type: 'array', items: toSchema(shape.list) })
  if (shape.scalars.size > 0) schemas.push(toScalarSchema([...shape.scalars]))
  const [only, ...others] = schemas
  return only && others.length === 0 ? only : { anyOf: schemas }
}

function toScalarSchema(scalars: readonly ScalarType[]): JsonSchema {
  const [only, ...others] = scalars.map((scalar) => (scalar === 'integer' ? 'number' : scalar))
  if (others.length > 0) return { type: [only, ...others] }
  return scalars[0] === 'integer' ? { type: only, description: 'A whole number in the example.' } : { type: only }
}

function toObjectSchema(object: ObjectShape): JsonSchema {
  // The APIs of models refuse an object schema without `properties`, even an empty one.
  if (allowsAnyField(object)) return { type: 'object', properties: {}, additionalProperties: true }
  return {
    type: 'object',
    properties: Object.fromEntries([...object.fields].map(([name, shape]) => [name, toSchema(shape)])),
    required: [...object.required],
    additionalProperties: false,
  }
}

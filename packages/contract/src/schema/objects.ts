import type { TArrayOptions, TSchema, TUnsafe } from 'typebox'
import type { Static } from './static.ts'
import { Type } from './type.ts'

export type { Static } from './static.ts'
export const { Optional } = Type

/** Makes the schema of an object without further fields. */
export function Closed<Properties extends Record<string, TSchema>>(
  title: string,
  description: string,
  properties: Properties,
) {
  return Type.Object(properties, { additionalProperties: false, title, description })
}

/** Makes the schema of query parameters or headers: unknown ones are ignored. */
export function Parameters<Properties extends Record<string, TSchema>>(properties: Properties) {
  return Type.Object(properties)
}

export function Unknown(description: string) {
  return Type.Unknown({ description })
}

export function List<Item extends TSchema>(item: Item, description: string, options: TArrayOptions = {}) {
  return Type.Array(item, { ...options, description })
}

/** Makes the schema of an object with any fields. */
export function JsonObject(description: string): TUnsafe<Record<string, unknown>> {
  return Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description })
}

/** Adds null to a schema, as a list of types that OpenAPI 3.1 tools and ajv both read without `anyOf`. */
export function Nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> {
  const { type, enum: values, ...rest } = schema as unknown as { type: string; enum?: unknown[] }
  return Type.Unsafe<Static<Schema> | null>({
    ...rest,
    type: [type, 'null'],
    ...(values ? { enum: [...values, null] } : {}),
  })
}

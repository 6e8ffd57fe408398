import { type Static, type TSchema, Type, type TUnsafe } from 'typebox'

/** The pattern of an id on the wire: hyphenated, any case. Answers use lower case. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Options of an object without further fields, as every object of the contract is. */
export const CLOSED = { additionalProperties: false } as const

/** Makes the schema of a UUID string. */
export function Uuid(options: { description: string; examples?: string[] }) {
  return Type.String({ format: 'uuid', ...options })
}

/** Makes the schema of a point in time as ISO 8601 text. */
export function DateTime(options: { description: string; examples?: string[] }) {
  return Type.String({ format: 'date-time', ...options })
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

/** Makes the schema of a string out of a closed list. An enumeration that may gain values is a plain string instead. */
export function StringEnum<const Values extends readonly string[]>(
  values: Values,
  options: { description: string; examples?: string[]; default?: Values[number] },
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options })
}

/**
 * Makes the schema of a string with documented values, by value, that may gain others: it accepts every string. The
 * extension `x-enumDescriptions` is Redocly's.
 */
export function OpenEnum(
  meanings: Readonly<Record<string, string>>,
  options: { description: string; examples?: string[] },
): TUnsafe<string> {
  const known = { enum: Object.keys(meanings), 'x-enumDescriptions': meanings }
  return Type.Unsafe<string>({ type: 'string', ...options, anyOf: [known, { type: 'string' }] })
}

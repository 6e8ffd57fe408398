import { type Static, type TSchema, Type, type TUnsafe } from 'typebox'

/** The pattern of an id on the wire: hyphenated, any case. Answered in lower case. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** A UUID string. `storable` text and `uuid` are formats that the package's one ajv instance knows. */
export function Uuid(options: { description: string; examples?: string[] }) {
  return Type.String({ format: 'uuid', ...options })
}

/** A point in time as ISO 8601 text. */
export function DateTime(options: { description: string; examples?: string[] }) {
  return Type.String({ format: 'date-time', ...options })
}

/** The schema or null, as a type list that OpenAPI 3.1 tools and ajv both read without `anyOf`. */
export function Nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> {
  const { type, enum: values, ...rest } = schema as unknown as { type: string; enum?: unknown[] }
  return Type.Unsafe<Static<Schema> | null>({
    ...rest,
    type: [type, 'null'],
    ...(values ? { enum: [...values, null] } : {}),
  })
}

/** A string out of a closed list. An open enumeration of the contract is a plain string instead. */
export function StringEnum<const Values extends readonly string[]>(
  values: Values,
  options: { description: string; examples?: string[]; default?: Values[number] },
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options })
}

/** An object without further fields, as every object of the contract is. */
export const closed = { additionalProperties: false } as const

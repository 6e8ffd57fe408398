import type { TNumberOptions, TStringOptions, TUnsafe } from 'typebox'
import { Type } from './type.ts'

export function Str(description: string, options: TStringOptions = {}) {
  return Type.String({ ...options, description })
}

export function Int(description: string, options: TNumberOptions = {}) {
  return Type.Integer({ ...options, description })
}

export function Bool(description: string, options: { default?: boolean } = {}) {
  return Type.Boolean({ ...options, description })
}

/** Makes the schema of a text that PostgreSQL can store: no NUL and no lone surrogate. */
export function Text(maxLength: number, description: string, minLength = 0, options: TStringOptions = {}) {
  return Str(description, { ...(minLength > 0 ? { minLength } : {}), maxLength, format: 'storable', ...options })
}

/**
 * Makes the schema of what people call something: a text with a character that they can see. White space around it is
 * removed from the body of a request.
 */
export function Name(maxLength: number, description: string, minLength = 1, options: TStringOptions = {}) {
  return Text(maxLength, description, minLength, { format: 'name', ...options })
}

/** Makes the schema of a UUID string. */
export function Uuid(description: string, options: TStringOptions = {}) {
  return Str(description, { format: 'uuid', ...options })
}

/** The fields that name a thing. */
export function named(what: string) {
  return { id: Uuid(what), name: Str('Its name.') }
}

/** Makes the schema of a point in time as ISO 8601 text. */
export function DateTime(description: string, options: TStringOptions = {}) {
  return Str(description, { format: 'date-time', ...options })
}

/** Makes the schema of a string out of a closed list. An enumeration that may gain values is a plain string instead. */
export function StringEnum<const Values extends readonly string[]>(
  values: Values,
  description: string,
  options: { default?: Values[number] } = {},
): TUnsafe<Values[number]> {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...options, description })
}

/**
 * Makes the schema of a string with documented values, by value, that may gain others: it accepts every string. The
 * extension `x-enumDescriptions` is Redocly's.
 */
export function OpenEnum(
  meanings: Readonly<Record<string, string>>,
  description: string,
  options: { examples: string[] },
): TUnsafe<string> {
  const known = { enum: Object.keys(meanings), 'x-enumDescriptions': meanings }
  return Type.Unsafe<string>({ type: 'string', ...options, description, anyOf: [known, { type: 'string' }] })
}

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Static, TSchema } from 'typebox'
import { isStorableText } from './text.ts'
import { UUID_PATTERN } from './types.ts'

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/**
 * The only ajv instance: JSON Schema 2020-12, all errors at once, lengths in code points, the formats of this package.
 * `validateSchema` is off because compiling the meta-schema takes a tenth of a service's boot; a test validates every
 * schema instead.
 */
export const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  allowUnionTypes: true,
  verbose: true,
  validateSchema: false,
})
ajv.addFormat('uuid', UUID_PATTERN)
ajv.addFormat('date-time', (text: string) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)))
ajv.addFormat('storable', isStorableText)
// Annotates the values of an enumeration.
ajv.addVocabulary(['x-enumDescriptions'])

/** Compiles the schema's validator. Compile once: it takes milliseconds. */
export function compile<Schema extends TSchema>(schema: Schema): ValidateFunction<Static<Schema>> {
  return ajv.compile<Static<Schema>>(schema)
}

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Static, TSchema } from 'typebox'
import { UUID_PATTERN } from './schema.ts'
import { isStorableText } from './text.ts'

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/**
 * The one ajv instance: JSON Schema 2020-12, every fault at once, lengths in code points, this package's formats. That the
 * schemas are valid themselves is for the tests: compiling what checks it takes a tenth of a service's boot.
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

/** The schema's validator, compiled once when its module loads. */
export function compile<Schema extends TSchema>(schema: Schema): ValidateFunction<Static<Schema>> {
  return ajv.compile<Static<Schema>>(schema)
}

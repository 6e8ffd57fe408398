import { _, Ajv2020, str, type ValidateFunction } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import type { Static } from './static.ts'
import { countCodePoints, isName, isStorableText } from './text.ts'
import { UUID_PATTERN } from '../enumerations.ts'

const DATE_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** Reports whether the text is a time of a day that exists: `Date` reads 30 February as 2 March. */
function isDateTime(text: string): boolean {
  const [, day = ''] = DATE_TIME.exec(text) ?? []
  return day !== '' && !Number.isNaN(Date.parse(text)) && new Date(day).toISOString().startsWith(day)
}

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
ajv.addFormat('date-time', isDateTime)
ajv.addFormat('storable', isStorableText)
ajv.addFormat('name', isName)
ajv.addFormat('trimmed', isStorableText)
// In place of ajv's own, which counts the code points of each text: 2.5 ms for one of 1 MiB. A text has at least half
// as many code points as UTF-16 units, and at most as many.
ajv.removeKeyword('maxLength')
ajv.addKeyword({
  keyword: 'maxLength',
  before: 'minLength',
  type: 'string',
  schemaType: 'number',
  error: {
    message: ({ schemaCode }) => str`must NOT have more than ${schemaCode} characters`,
    params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
  },
  code(cxt) {
    const { gen, data, schemaCode: max } = cxt
    const count = gen.scopeValue('func', { ref: countCodePoints })
    cxt.fail(_`${data}.length > ${max} && (${data}.length > 2 * ${max} || ${count}(${data}) > ${max})`)
  },
})
// Annotates the values of an enumeration.
ajv.addVocabulary(['x-enumDescriptions'])

/** Formats of texts whose surrounding white space is removed before they are checked, as fields of a request's body. */
export const TRIMMED_FORMATS: readonly unknown[] = ['name', 'trimmed']
/** Formats of this ajv instance that other tools do not know. */
export const OWN_FORMATS: readonly unknown[] = ['storable', ...TRIMMED_FORMATS]

/** Compiles the schema's validator. Compile once: it takes milliseconds. */
export function compile<Schema extends TSchema>(schema: Schema): ValidateFunction<Static<Schema>> {
  return ajv.compile<Static<Schema>>(schema)
}

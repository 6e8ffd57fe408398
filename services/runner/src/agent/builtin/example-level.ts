import { countJsonBytes, type JsonSchema } from '@workflow-service/contract'
import { listProperties } from './example-schema.ts'
import { normalizeName } from './normalize-name.ts'

/**
 * An object of the example with the objects inside it, but not those inside lists: what one object of the context fills.
 * Computed once, since a list can have thousands of items of one level.
 */
export interface ExampleLevel {
  readonly object: ExampleObject
  /** The number of fields by their last name. */
  readonly fieldCounts: ReadonlyMap<string, number>
}

export interface ExampleObject {
  readonly fields: readonly ExampleField[]
  readonly required: readonly ExampleField[]
  readonly optional: readonly ExampleField[]
  /** The optional fields, by key and by last name. */
  readonly optionalByName: ReadonlyMap<string, readonly ExampleField[]>
}

export interface ExampleField {
  readonly name: string
  /** The bytes of the name as JSON. */
  readonly nameBytes: number
  /** The names from the level's object to this field. */
  readonly path: readonly string[]
  /** The normalized path: equal keys name the same field. */
  readonly key: string
  /** The normalized last name of the path. */
  readonly lastName: string
  readonly schema: JsonSchema
  readonly isRequired: boolean
  /** Whether it gets the whole context if the context does not name it. */
  readonly isText: boolean
  /** The fields of a field that is an object and nothing else. */
  readonly object: ExampleObject | null
}

/** A text field whose name ends with one of these words gets the whole context if the context does not name the field. */
const TEXT_WORDS = new Set(['text', 'message', 'summary', 'content', 'body'])

/** Reads the level that begins at an object schema. */
export function readLevel(schema: JsonSchema): ExampleLevel {
  const fieldCounts = new Map<string, number>()
  return { object: readObject(schema, [], ''), fieldCounts }

  function readObject(objectSchema: JsonSchema, parentPath: readonly string[], parentKey: string): ExampleObject {
    const requiredNames = new Set(objectSchema['required'] as string[] | undefined)
    const fields = listProperties(objectSchema).map(([name, fieldSchema]): ExampleField => {
      const lastName = normalizeName(name)
      const path = [...parentPath, name]
      const key = parentKey + lastName
      fieldCounts.set(lastName, (fieldCounts.get(lastName) ?? 0) + 1)
      const hasFields = fieldSchema['type'] === 'object' && listProperties(fieldSchema).length > 0
      return {
        name,
        nameBytes: countJsonBytes(name),
        path,
        key,
        lastName,
        schema: fieldSchema,
        isRequired: requiredNames.has(name),
        isText: fieldSchema['type'] === 'string' && TEXT_WORDS.has(lastWordOf(name)),
        object: hasFields ? readObject(fieldSchema, path, key) : null,
      }
    })
    const optional = fields.filter(({ isRequired }) => !isRequired)
    const optionalByName = new Map<string, ExampleField[]>()
    for (const field of optional) {
      for (const name of new Set([field.key, field.lastName])) {
        const sameName = optionalByName.get(name)
        if (sameName) sameName.push(field)
        else optionalByName.set(name, [field])
      }
    }
    return { fields, required: fields.filter(({ isRequired }) => isRequired), optional, optionalByName }
  }
}

/** The last word of a name such as `messageText` or `order_summary`, in lower case. */
function lastWordOf(name: string): string {
  const words = name
    .slice(-200)
    .replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .split(/[^\p{L}\p{N}]+/u)
  return words.findLast((word) => word !== '')?.toLowerCase() ?? ''
}

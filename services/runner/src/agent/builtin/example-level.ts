import { countJsonBytes, type JsonSchema } from '@workflow-service/contract'
import { listProperties, listTypes } from './example-schema.ts'
import { unitOf } from './name-unit.ts'
import { toWords } from './name-words.ts'
import { normalizeName } from './normalize-name.ts'

/**
 * An object of the example with the objects inside it, but not those inside lists: what one object of the context fills.
 * Computed once, since a list can have thousands of items of one level.
 */
export interface ExampleLevel {
  readonly object: ExampleObject
  /** The fields that are no objects, by each of the keys under which a name of the context finds them. */
  readonly byKey: ReadonlyMap<string, readonly ExampleField[]>
  readonly byWords: ReadonlyMap<string, readonly ExampleField[]>
  readonly byLastName: ReadonlyMap<string, readonly ExampleField[]>
  readonly byLastWords: ReadonlyMap<string, readonly ExampleField[]>
  /** By its words without one that carries little meaning. */
  readonly byFewerWords: ReadonlyMap<string, readonly FewerWords[]>
  /** The number of fields, objects included, by their last name, and by its words. */
  readonly nameCounts: ReadonlyMap<string, number>
  readonly wordCounts: ReadonlyMap<string, number>
  /** The fields that are lists of objects, in the order of the example. */
  readonly lists: readonly ExampleField[]
  /** The words of the names of the objects and lists. */
  readonly sections: ReadonlySet<string>
}

export interface ExampleObject {
  readonly fields: readonly ExampleField[]
  readonly required: readonly ExampleField[]
  readonly hasOptional: boolean
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
  /** The words of the path after the table of synonyms, and those of its last name. */
  readonly words: string
  readonly lastWords: string
  readonly schema: JsonSchema
  readonly isRequired: boolean
  /** Whether it gets the whole context if the context does not name it. */
  readonly isText: boolean
  /** Whether an object of the context can be its value. */
  readonly takesObject: boolean
  /** The fields of a field that is an object and nothing else. */
  readonly object: ExampleObject | null
}

export interface FewerWords {
  readonly field: ExampleField
  readonly dropped: string
}

/** A text field whose name ends with one of these words gets the whole context if the context does not name the field. */
const TEXT_WORDS = new Set(['text', 'message', 'summary', 'content', 'body'])

/** Words that a name can leave out, if the value fits ("Order: A-1" for `order_id`). */
const DROPPABLE = new Set([
  'name',
  'id',
  'date',
  'amount',
  'rate',
  'unit',
  'order',
  'invoice',
  'ticket',
  'customer',
  'contact',
])

/** Objects of an address, by their words, and the other name that their section can have. */
const ADDRESS_OBJECTS = new Map([
  ['shipping', 'address shipping'],
  ['delivery', 'address shipping'],
  ['billing', 'address billing'],
  ['address shipping', 'shipping'],
  ['address billing', 'billing'],
])

const ADDRESS_PARTS = new Set(['name', 'company', 'street', 'city', 'zip', 'country', 'phone', 'email'])

/** Every set of words with one droppable word left out, and that word. */
export function leaveOutWords(words: string): { dropped: string; words: string }[] {
  const list = words.split(' ')
  if (list.length < 2 || list.length > 10) return []
  return list
    .filter((word) => DROPPABLE.has(word) || unitOf(word) !== undefined)
    .map((dropped) => ({ dropped, words: list.filter((word) => word !== dropped).join(' ') }))
}

/** Reads the level that begins at an object schema. */
export function readLevel(schema: JsonSchema): ExampleLevel {
  const byKey = new Map<string, ExampleField[]>()
  const byWords = new Map<string, ExampleField[]>()
  const byLastName = new Map<string, ExampleField[]>()
  const byLastWords = new Map<string, ExampleField[]>()
  const byFewerWords = new Map<string, FewerWords[]>()
  const nameCounts = new Map<string, number>()
  const wordCounts = new Map<string, number>()
  const lists: ExampleField[] = []
  const sections = new Set<string>()
  const others: { words: string; field: ExampleField }[] = []
  const object = readObject(schema, [], '')
  addPrefixes(object.fields)
  const own = new Set(byWords.keys())
  for (const { words, field } of others) if (!own.has(words)) add(byWords, words, field)
  return { object, byKey, byWords, byLastName, byLastWords, byFewerWords, nameCounts, wordCounts, lists, sections }

  function readObject(objectSchema: JsonSchema, parentPath: readonly string[], parentKey: string): ExampleObject {
    const requiredNames = new Set(objectSchema['required'] as string[] | undefined)
    const fields = listProperties(objectSchema).map(([name, fieldSchema]): ExampleField => {
      const lastName = normalizeName(name)
      const path = [...parentPath, name]
      const key = parentKey + lastName
      const types = listTypes(fieldSchema)
      const hasFields = fieldSchema['type'] === 'object' && listProperties(fieldSchema).length > 0
      const field: ExampleField = {
        name,
        nameBytes: countJsonBytes(name),
        path,
        key,
        lastName,
        words: toWords(path.slice(-4).join(' ')),
        lastWords: toWords(name),
        schema: fieldSchema,
        isRequired: requiredNames.has(name),
        isText: fieldSchema['type'] === 'string' && TEXT_WORDS.has(lastWordOf(name)),
        takesObject: types.length === 0 || types.some((type) => type['type'] === 'object' || isObjectList(type)),
        object: hasFields ? readObject(fieldSchema, path, key) : null,
      }
      addField(field)
      return field
    })
    const required = fields.filter(({ isRequired }) => isRequired)
    return { fields, required, hasOptional: required.length < fields.length }
  }

  /** `billing_name` and `billing_city` are in a section "Billing", or "Billing address", of the context. */
  function addPrefixes(fields: readonly ExampleField[]): void {
    const plain = fields.filter(({ schema: { type } }) => type !== 'object' && type !== 'array')
    const byPrefix = Map.groupBy(plain, ({ name }) => firstWordOf(name))
    for (const [prefix, all] of byPrefix) {
      const words = toWords(prefix ?? '')
      if (prefix === undefined || all.length < 2 || byWords.has(words)) continue
      sections.add(words)
      const address = ADDRESS_OBJECTS.get(words)
      if (address === undefined || words.includes(' ')) continue
      sections.add(address)
      for (const field of all) {
        const rest = toWords(field.name.slice(prefix.length))
        if (ADDRESS_PARTS.has(rest)) others.push({ words: toWords(`${address} ${rest}`), field })
      }
    }
  }

  function addField(field: ExampleField): void {
    nameCounts.set(field.lastName, (nameCounts.get(field.lastName) ?? 0) + 1)
    wordCounts.set(field.lastWords, (wordCounts.get(field.lastWords) ?? 0) + 1)
    const isList = listTypes(field.schema).some(isObjectList)
    if (field.object || isList) for (const words of [field.words, field.lastWords]) sections.add(words)
    const parent = field.object ? field.lastWords : toWords(field.path.at(-2) ?? '')
    const address = ADDRESS_OBJECTS.get(parent)
    if (address !== undefined && field.object) sections.add(address)
    else if (address !== undefined) {
      const words = toWords([...address.split(' '), field.name].join(' '))
      others.push({ words, field })
    }
    if (field.object) return
    if (isList) lists.push(field)
    add(byKey, field.key, field)
    add(byWords, field.words, field)
    add(byLastName, field.lastName, field)
    add(byLastWords, field.lastWords, field)
    for (const { words, dropped } of leaveOutWords(field.words)) add(byFewerWords, words, { field, dropped })
  }
}

function add<Value>(index: Map<string, Value[]>, key: string, value: Value): void {
  const known = index.get(key)
  if (known) known.push(value)
  else index.set(key, [value])
}

/** Whether the schema is one of a list of objects with fields. */
function isObjectList(schema: JsonSchema): boolean {
  return itemLevelSchema(schema) !== undefined
}

/** The schema of the objects in a list; undefined if it has none with fields. */
export function itemLevelSchema(schema: JsonSchema): JsonSchema | undefined {
  const list = listTypes(schema).find((type) => type['type'] === 'array')
  const items = list && listTypes((list['items'] as JsonSchema | undefined) ?? {})
  return items?.find((item) => item['type'] === 'object' && listProperties(item).length > 0)
}

/** The word before another one in a name such as `billing_name` or `billingName`; undefined if it has only one. */
function firstWordOf(name: string): string | undefined {
  return /^(?:\p{L}{2,30}?(?=[_\s-]+\p{L})|\p{Ll}{2,30}(?=\p{Lu}))/u.exec(name.slice(0, 200))?.[0]
}

/** The last word of a name such as `messageText` or `order_summary`, in lower case. */
function lastWordOf(name: string): string {
  const words = name
    .slice(-200)
    .replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
    .split(/[^\p{L}\p{N}]+/u)
  return words.findLast((word) => word !== '')?.toLowerCase() ?? ''
}

import { isJsonObject, type JsonSchema, truncateText } from '@workflow-service/contract'

/** Field names that all APIs accept: Google's is the narrowest. */
const FIELD_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/
/** An alias is made of the name's beginning: normalizing a long run of combining marks takes quadratic time. */
const MAX_NORMALIZED_LENGTH = 200
/** Characters of an example value in a field's description. */
const MAX_SAMPLE_LENGTH = 100

export interface ToolSchema {
  readonly schema: JsonSchema
  /** Converts the arguments of a call to a payload, or to what a look-up takes; no object if they do not fit. */
  toPayload: (args: Record<string, unknown>) => unknown
}

/**
 * Converts the schema of a payload to one that the APIs of all providers accept. Field names that some reject become
 * aliases of letters and digits; the field's description gives its real name. Google rejects objects without fields, so
 * an object of any fields becomes a list of names and values. A list of types, or no type at all, becomes `anyOf`.
 * @param example Adds its texts to the descriptions of the fields.
 */
export function toToolSchema(schema: JsonSchema, example?: Record<string, unknown>): ToolSchema {
  const aliases = createAliases(new Set(listFieldNames(schema)))
  const realNames = new Map([...aliases].map(([name, alias]) => [alias, name]))
  const converted = convert(schema, aliases, example)
  if (isOpenObject(schema)) {
    return {
      schema: toObjectSchema({ fields: converted }),
      toPayload: (args) => restore(args['fields'] ?? args, schema, realNames),
    }
  }
  return { schema: converted, toPayload: (args) => restore(args, schema, realNames) }
}

/** OpenAI refuses all of them beside `properties`, Anthropic the first three. */
const REFUSED_AT_TOP = ['anyOf', 'oneOf', 'allOf', 'not', 'enum']
/** Google refuses tools without parameters; the dispatcher ignores this one. */
const UNUSED: [string, JsonSchema][] = [['unused', { type: 'string', description: 'Leave it out.' }]]

/**
 * Converts the schema of a look-up's arguments, which its server wrote. Replaces what makes an API refuse the request
 * with all tools in it: names such as `page[size]`, which Anthropic checks at the top only, alternatives of the whole
 * object, lists without a type, and references. The server checks the arguments itself.
 */
export function toLookupSchema(parameters: JsonSchema): ToolSchema {
  const { properties, required, ...others } = inlineReferences(parameters) as {
    properties?: JsonSchema
    required?: string[]
  }
  const fields = Object.entries((properties ?? {}) as Record<string, JsonSchema>)
  const aliases = createAliases(new Set(fields.map(([name]) => name)))
  const realNames = new Map([...aliases].map(([name, alias]) => [alias, name]))
  const renamed = fields.map(([name, field]) => renameField(name, field, aliases))
  const kept = Object.entries(others).filter(([keyword]) => !REFUSED_AT_TOP.includes(keyword))
  return {
    schema: {
      additionalProperties: false,
      ...Object.fromEntries(kept),
      type: 'object',
      properties: Object.fromEntries(renamed.length > 0 ? renamed : UNUSED),
      ...(required && { required: required.map((name) => aliases.get(name) ?? name) }),
    },
    toPayload(args) {
      if (realNames.size === 0) return args
      return Object.fromEntries(Object.entries(args).map(([name, value]) => [realNameOf(name, args, realNames), value]))
    },
  }
}

/** Characters of the definitions that replace the references of a schema: each may be used many times. */
const MAX_INLINED_LENGTH = 32_768
/** Definitions within one another. */
const MAX_INLINED_DEPTH = 8

/**
 * Replaces references by what they refer to: Gemini refuses other keywords beside them, and Anthropic those that lead
 * nowhere. One that leads nowhere, to itself, or beyond a limit becomes any value. OpenAI and Google refuse lists
 * without `items`.
 */
function inlineReferences(root: JsonSchema): JsonSchema {
  let left = MAX_INLINED_LENGTH
  const inlineEach = (schema: JsonSchema, within: readonly string[]): JsonSchema =>
    Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, inline(value, within)]))
  const inline = (value: unknown, within: readonly string[]): unknown => {
    if (Array.isArray(value)) return value.map((item) => inline(item, within))
    if (!isJsonObject(value)) return value
    const { $ref, ...others } = value
    if (typeof $ref === 'string') {
      const isWithinLimits = left > 0 && within.length < MAX_INLINED_DEPTH && !within.includes($ref)
      const target = isWithinLimits ? findByPointer(root, $ref) : undefined
      if (!isJsonObject(target)) return { ...inlineEach(others, within), anyOf: ANY_VALUE }
      left -= JSON.stringify(target).length
      return inline({ ...target, ...others }, [...within, $ref])
    }
    const isUntypedList = value['type'] === 'array' && !Object.hasOwn(value, 'items')
    return { ...inlineEach(value, within), ...(isUntypedList && { items: { anyOf: ANY_VALUE } }) }
  }
  const { $defs: _defs, definitions: _definitions, ...schema } = root
  return inline(schema, []) as JsonSchema
}

/** What a reference such as `#/$defs/Order` (RFC 6901) leads to; undefined for one that leads elsewhere or nowhere. */
function findByPointer(root: JsonSchema, reference: string): unknown {
  const [start, ...path] = reference.split('/')
  if (start !== '#') return undefined
  return path.reduce<unknown>((value, part) => {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined
  }, root)
}

function createAliases(names: ReadonlySet<string>): Map<string, string> {
  const aliases = new Map<string, string>()
  const usedNames = new Set(names)
  const nextNumbers = new Map<string, number>()
  for (const name of names) {
    if (FIELD_NAME.test(name)) continue
    const letters = name
      .slice(0, MAX_NORMALIZED_LENGTH)
      .normalize('NFKD')
      .replace(/\p{M}+/gu, '')
      .replace(/[^a-zA-Z0-9]+/gu, '_')
    const word = letters.slice(0, 50).replace(/^_+|_+$/gu, '') || 'field'
    const base = /^\d/.test(word) ? `field_${word}` : word
    let alias = base
    let number = nextNumbers.get(base) ?? 2
    for (; usedNames.has(alias); number += 1) alias = `${base}_${number}`
    nextNumbers.set(base, number)
    usedNames.add(alias)
    aliases.set(name, alias)
  }
  return aliases
}

function listFieldNames({ properties, items, anyOf }: JsonSchema): string[] {
  const fields = Object.entries((properties ?? {}) as Record<string, JsonSchema>)
  const others = [...(items ? [items as JsonSchema] : []), ...((anyOf ?? []) as JsonSchema[])]
  return [...fields.flatMap(([name, sub]) => [name, ...listFieldNames(sub)]), ...others.flatMap(listFieldNames)]
}

/** Whether the schema is an object of any fields. */
function isOpenObject({ type, properties }: JsonSchema): boolean {
  return type === 'object' && Object.keys(properties ?? {}).length === 0
}

function convert(schema: JsonSchema, aliases: ReadonlyMap<string, string>, example: unknown): JsonSchema {
  const { type, ...untyped } = schema
  const { properties, required, items, anyOf } = untyped
  if (anyOf)
    return {
      ...schema,
      anyOf: (anyOf as JsonSchema[]).flatMap((sub) => alternativesOf(convert(sub, aliases, example))),
    }
  if (Array.isArray(type)) return { ...untyped, anyOf: type.map((one) => ({ type: one as string })) }
  if (type === undefined) return { ...schema, anyOf: ANY_VALUE }
  if (type === 'array') {
    const [first] = Array.isArray(example) ? (example as unknown[]) : []
    return { ...schema, items: convert(items as JsonSchema, aliases, first) }
  }
  if (isOpenObject(schema)) return OPEN_FIELDS
  if (type !== 'object') return typeof example === 'string' ? withSample(schema, example) : schema
  const fields = Object.entries(properties as Record<string, JsonSchema>).map(([name, sub]) => {
    const value = isJsonObject(example) && Object.hasOwn(example, name) ? example[name] : undefined
    return renameField(name, convert(sub, aliases, value), aliases)
  })
  return {
    ...schema,
    properties: Object.fromEntries(fields),
    required: ((required ?? []) as string[]).map((name) => aliases.get(name) ?? name),
  }
}

function renameField(name: string, field: JsonSchema, aliases: ReadonlyMap<string, string>): [string, JsonSchema] {
  const alias = aliases.get(name)
  return alias === undefined ? [name, field] : [alias, describe(field, `Sent as ${JSON.stringify(name)}.`)]
}

const ANY_VALUE: JsonSchema[] = ['string', 'number', 'boolean', 'null'].map((type) => ({ type }))

const OPEN_FIELDS: JsonSchema = {
  type: 'array',
  description: 'Fields of any name, each once.',
  items: toObjectSchema({ name: { type: 'string' }, value: { anyOf: ANY_VALUE } }),
}

function toObjectSchema(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

/** The alternatives of an `anyOf` within another one become those of the outer. */
function alternativesOf(schema: JsonSchema): JsonSchema[] {
  return schema['anyOf'] ? (schema['anyOf'] as JsonSchema[]) : [schema]
}

function withSample(schema: JsonSchema, sample: string): JsonSchema {
  return sample === ''
    ? schema
    : describe(schema, `Such as ${JSON.stringify(truncateText(sample, MAX_SAMPLE_LENGTH))}.`)
}

function describe(schema: JsonSchema, text: string): JsonSchema {
  return { ...schema, description: [text, schema['description']].filter(Boolean).join(' ') }
}

/**
 * Restores the names and the objects of any fields, where the value follows the schema; anything else stays as it is.
 */
function restore(value: unknown, schema: JsonSchema, realNames: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  const alternatives = alternativesOf(schema)
  if (Array.isArray(value)) {
    const list = alternatives.find(({ type }) => type === 'array')
    if (list) return value.map((item) => restore(item, list['items'] as JsonSchema, realNames))
    return alternatives.some(isOpenObject) && isFieldList(value)
      ? Object.fromEntries(value.map((field) => [field.name, field.value]))
      : (value as unknown[])
  }
  const properties = alternatives.find(({ type }) => type === 'object')?.['properties'] as
    | Record<string, JsonSchema>
    | undefined
  if (!properties || Object.keys(properties).length === 0) return value
  return Object.fromEntries(
    Object.entries(value).map(([alias, item]) => {
      const name = realNameOf(alias, value, realNames)
      return [name, Object.hasOwn(properties, name) ? restore(item, properties[name]!, realNames) : (item as unknown)]
    }),
  )
}

/**
 * The real name of a field of the value. With both of them, one of the values would be lost: the alias stays, which the
 * check of the payload, or the server of a look-up, refuses.
 */
function realNameOf(alias: string, value: object, realNames: ReadonlyMap<string, string>): string {
  const real = realNames.get(alias)
  return real === undefined || Object.hasOwn(value, real) ? alias : real
}

/** Whether they are fields, each name once: an object would keep the last value of a name and lose the others. */
function isFieldList(value: readonly unknown[]): value is { name: string; value: unknown }[] {
  return value.every(isField) && new Set(value.map(({ name }) => name)).size === value.length
}

function isField(value: unknown): value is { name: string; value: unknown } {
  return isJsonObject(value) && typeof value['name'] === 'string' && 'value' in value && Object.keys(value).length === 2
}

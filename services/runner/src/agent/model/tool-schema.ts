import type { JsonSchema } from '@workflow-service/contract'

/** Field names that all APIs accept; Anthropic rejects others. */
const FIELD_NAME = /^[a-zA-Z0-9_.-]{1,64}$/
/** An alias is made of the name's beginning: normalizing a long run of combining marks takes quadratic time. */
const MAX_NORMALIZED_LENGTH = 200

/**
 * Replaces field names that some APIs reject by aliases of letters and digits; the field's description gives its real
 * name. `toPayload` restores the real names in the arguments.
 */
export function toToolSchema(schema: JsonSchema): {
  schema: JsonSchema
  toPayload(args: Record<string, unknown>): Record<string, unknown>
} {
  const names = new Set(listFieldNames(schema))
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
    const base = letters.slice(0, 50).replace(/^_+|_+$/gu, '') || 'field'
    let alias = base
    let number = nextNumbers.get(base) ?? 2
    for (; usedNames.has(alias); number += 1) alias = `${base}_${number}`
    nextNumbers.set(base, number)
    usedNames.add(alias)
    aliases.set(name, alias)
  }
  if (aliases.size === 0) return { schema, toPayload: (args) => args }
  const realNames = new Map([...aliases].map(([name, alias]) => [alias, name]))
  return {
    schema: renameFields(schema, aliases),
    toPayload: (args) => restoreNames(args, realNames) as Record<string, unknown>,
  }
}

function listFieldNames(schema: JsonSchema): string[] {
  return subschemas(schema).flatMap(([name, sub]) => [...(name === null ? [] : [name]), ...listFieldNames(sub)])
}

/** The direct subschemas, with the field name of each that is a field. */
function subschemas({ properties, items, anyOf }: JsonSchema): [string | null, JsonSchema][] {
  return [
    ...Object.entries((properties ?? {}) as Record<string, JsonSchema>),
    ...(items ? [[null, items as JsonSchema] as [null, JsonSchema]] : []),
    ...((anyOf ?? []) as JsonSchema[]).map((sub): [null, JsonSchema] => [null, sub]),
  ]
}

function renameFields(schema: JsonSchema, aliases: ReadonlyMap<string, string>): JsonSchema {
  const { properties, required, items, anyOf } = schema
  const rename = ([name, sub]: [string, JsonSchema]): [string, JsonSchema] => {
    const alias = aliases.get(name)
    const renamed = renameFields(sub, aliases)
    if (alias === undefined) return [name, renamed]
    const description = [`Sent as ${JSON.stringify(name)}.`, sub['description']].filter(Boolean).join(' ')
    return [alias, { ...renamed, description }]
  }
  return {
    ...schema,
    ...(properties
      ? { properties: Object.fromEntries(Object.entries(properties as Record<string, JsonSchema>).map(rename)) }
      : {}),
    ...(required ? { required: (required as string[]).map((name) => aliases.get(name) ?? name) } : {}),
    ...(items ? { items: renameFields(items as JsonSchema, aliases) } : {}),
    ...(anyOf ? { anyOf: (anyOf as JsonSchema[]).map((sub) => renameFields(sub, aliases)) } : {}),
  }
}

function restoreNames(value: unknown, realNames: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => restoreNames(item, realNames))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [realNames.get(name) ?? name, restoreNames(item, realNames)]),
  )
}

import type { ModelToolDefinition } from './turn.ts'

/** A request that the real API rejects; the message is close to the real one. */
export class ProtocolViolation extends Error {
  override name = 'ProtocolViolation'
  readonly status: number

  constructor(message: string, status = 400) {
    super(message)
    this.status = status
  }
}

export function reject(message: string, status?: number): never {
  throw new ProtocolViolation(message, status)
}

export type Fields = Record<string, unknown>

export function readObject(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) reject(`${path}: must be an object`)
  return value as Fields
}

/**
 * Checks that the value is an object with these fields: `a` is required, `a?` may be missing. Other fields are
 * rejected.
 */
export function readFields(value: unknown, path: string, names: string): Fields {
  const fields = readObject(value, path)
  const known = new Map(names.split(' ').map((name) => [name.replace('?', ''), name.endsWith('?')]))
  for (const name of Object.keys(fields)) {
    if (!known.has(name)) reject(`${path}: Unknown field "${name}"`)
  }
  for (const [name, isOptional] of known) {
    if (!isOptional && fields[name] === undefined) reject(`${path}.${name}: Field required`)
  }
  return fields
}

export function readString(
  value: unknown,
  path: string,
  { pattern, max = Infinity }: { pattern?: RegExp; max?: number } = {},
): string {
  if (typeof value !== 'string') reject(`${path}: must be a string`)
  if (value.length > max) {
    reject(`Invalid '${path}': string too long. Expected a string with maximum length ${max}, but got ${value.length}`)
  }
  if (pattern && !pattern.test(value)) reject(`Invalid '${path}': does not match the expected pattern ${pattern}`)
  return value
}

export function readList(value: unknown, path: string, { min = 1, max = Infinity } = {}): unknown[] {
  if (!Array.isArray(value)) reject(`${path}: must be a list`)
  if (value.length < min) reject(`Invalid '${path}': empty array. Expected an array with minimum length ${min}`)
  if (value.length > max) reject(`Invalid '${path}': array too long. Expected an array with maximum length ${max}`)
  return value
}

/** Like `readList`, of a field that may be missing. */
export function readOptionalList(value: unknown, path: string, limits?: { min?: number; max?: number }): unknown[] {
  return value === undefined ? [] : readList(value, path, limits)
}

/** Checks a field that may be missing. */
export function checkInteger(value: unknown, path: string, min: number): void {
  if (value === undefined) return
  if (!Number.isInteger(value) || (value as number) < min) reject(`${path}: must be a whole number of at least ${min}`)
}

/** Reads arguments in the form of JSON text. */
export function readJsonObject(value: unknown, path: string): Fields {
  let parsed: unknown
  try {
    parsed = JSON.parse(readString(value, path))
  } catch {
    reject(`${path}: is not JSON`)
  }
  return readObject(parsed, path)
}

/** What an API demands of a tool: of its name and description, and of the schema of its arguments. */
export interface ToolRules {
  readonly name: RegExp
  readonly maxDescription?: number
  readonly schema: SchemaRules
}

/** Reads the definition of a tool whose parts the API has in different places. */
export function readTool(tool: Partial<Record<keyof ModelToolDefinition, unknown>>, path: string, rules: ToolRules) {
  return {
    name: readString(tool.name, `${path}.name`, { pattern: rules.name }),
    description: readString(tool.description ?? '', `${path}.description`, { max: rules.maxDescription }),
    schema: checkToolSchema(tool.schema, `${path}.schema`, rules.schema),
  }
}

export function checkToolNames(tools: ModelToolDefinition[]): ModelToolDefinition[] {
  const names = tools.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) reject(`tools: names must be unique, but '${twice}' is not`)
  return tools
}

/** What an API demands of the schema of a tool's arguments. */
export interface SchemaRules {
  /** Keywords that the API knows; others are rejected. */
  readonly keywords?: ReadonlySet<string>
  readonly propertyName?: RegExp
  /** Whether an object without properties is rejected. */
  readonly rejectsEmptyObjects?: boolean
  /** Whether `type` may be a list of types. */
  readonly allowsTypeLists?: boolean
  /** Whether every subschema needs `type` or `anyOf`. */
  readonly requiresType?: boolean
  readonly maxDepth?: number
  /** Whether the schema must follow OpenAI's strict mode. */
  readonly isStrict?: boolean
}

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])

/** Checks a tool's schema: an object at the top, well-formed throughout, and within the rules of the API. */
function checkToolSchema(value: unknown, path: string, rules: SchemaRules): Fields {
  const schema = readObject(value, path)
  if (schema['type'] !== 'object') reject(`${path}: schema must be a JSON Schema of 'type: "object"'`)
  for (const keyword of ['anyOf', 'oneOf', 'allOf', 'enum', 'not']) {
    if (schema[keyword] !== undefined) reject(`${path}: does not support oneOf, allOf, or anyOf at the top level`)
  }
  checkSchema(schema, path, rules, 1)
  return schema
}

function checkSchema(value: unknown, path: string, rules: SchemaRules, depth: number): void {
  const schema = readObject(value, path)
  if (depth > (rules.maxDepth ?? 100)) reject(`${path}: exceeds the maximum allowed nesting depth`)
  for (const keyword of Object.keys(schema)) {
    if (rules.keywords && !rules.keywords.has(keyword)) reject(`${path}: Unknown name "${keyword}": Cannot find field.`)
  }
  const { type, properties, required, items, anyOf, additionalProperties, description } = schema
  if (Array.isArray(type) && !rules.allowsTypeLists) reject(`${path}.type: Proto field is not repeating`)
  const types: unknown[] = type === undefined ? [] : Array.isArray(type) ? type : [type]
  if (types.some((item) => !TYPES.has(item))) reject(`${path}.type: is not a type of JSON Schema`)
  if (rules.requiresType && types.length === 0 && anyOf === undefined) reject(`${path}: type or anyOf is required`)
  if (description !== undefined) readString(description, `${path}.description`)
  const names = Object.keys(readObject(properties ?? {}, `${path}.properties`))
  for (const name of names) {
    if (rules.propertyName && !rules.propertyName.test(name)) {
      reject(`${path}.properties: Property keys should match pattern '${rules.propertyName.source}' (${name})`)
    }
    checkSchema((properties as Fields)[name], `${path}.properties.${name}`, rules, depth + 1)
  }
  if (types.includes('object') && names.length === 0 && rules.rejectsEmptyObjects) {
    reject(`${path}.properties: should be non-empty for OBJECT type`)
  }
  for (const name of required === undefined ? [] : readList(required, `${path}.required`, { min: 0 })) {
    if (!names.includes(String(name))) reject(`${path}.required: property is not defined (${String(name)})`)
  }
  if (types.includes('array') && items === undefined) reject(`${path}: array schema missing items`)
  if (items !== undefined) checkSchema(items, `${path}.items`, rules, depth + 1)
  for (const [index, sub] of (anyOf === undefined ? [] : readList(anyOf, `${path}.anyOf`)).entries()) {
    checkSchema(sub, `${path}.anyOf.${index}`, rules, depth + 1)
  }
  if (rules.isStrict && types.includes('object')) {
    if (additionalProperties !== false)
      reject(`${path}: 'additionalProperties' is required to be supplied and to be false`)
    if (names.some((name) => !(required as unknown[] | undefined)?.includes(name))) {
      reject(`${path}: 'required' is required to be supplied and to be an array including every key in properties`)
    }
  }
}

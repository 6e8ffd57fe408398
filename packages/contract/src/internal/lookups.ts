import type { FieldError } from '../errors.ts'
import {
  ENDPOINT_URL_MAX_LENGTH,
  LOOKUP_TOOLS_MAX,
  SIGNING_SECRET_MAX_LENGTH,
  WEBHOOK_SOURCE_NAME_MAX_LENGTH,
} from '../limits.ts'
import { findJsonObjectErrors } from '../schema/check-json-value.ts'
import { Closed, JsonObject, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Name, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { isJsonObject } from '../schema/payload-shape.ts'

/** What a look-up connects to (contract README, "Look-ups"). */
const LOOKUP_KINDS = ['http', 'mcp'] as const

const DESCRIPTION_MAX_LENGTH = 1_000
const PATH_MAX_LENGTH = 1_000

const TOOL_FIELDS = {
  name: Str('Its name, unique in the look-up. Of an MCP server, the name that the server has.', {
    pattern: '^[A-Za-z0-9_.-]+$',
    examples: ['find_customer'],
    minLength: 1,
    maxLength: 128,
  }),
  description: Optional(
    Text(
      DESCRIPTION_MAX_LENGTH,
      'What it finds; the model reads it. Of an MCP server, the server gives it when the look-up is saved.',
    ),
  ),
  path: Optional(
    Text(
      PATH_MAX_LENGTH,
      'With `http`: the path with parameters in braces, such as `/customers/{customer_id}`. Other parameters become the query.',
      1,
      { pattern: '^/', examples: ['/customers/{customer_id}'] },
    ),
  ),
  parameters: Optional(
    JsonObject(
      'JSON Schema of the arguments: an object whose properties are texts, numbers, integers or booleans. Of an MCP server, the server gives it when the look-up is saved.',
    ),
  ),
}

/** A tool of a look-up that models may call. */
export const LookupTool = Closed('LookupTool', 'A tool of a look-up.', TOOL_FIELDS)
export type LookupTool = Static<typeof LookupTool>

/** A look-up to save (contract README, "Look-ups"). */
export const LookupIn = Closed('LookupIn', 'A look-up to save.', {
  name: Name(
    WEBHOOK_SOURCE_NAME_MAX_LENGTH,
    'Unique in the organization, ignoring case. A workflow uses the look-up by naming it.',
  ),
  kind: StringEnum(LOOKUP_KINDS, 'GET requests to an origin (`http`), or a server of the Model Context Protocol.'),
  url: Text(
    ENDPOINT_URL_MAX_LENGTH,
    'With `http`: the origin, such as `https://api.example.com`, and a path that comes before those of the tools. With `mcp`: the URL of the server.',
    1,
  ),
  header_name: Optional(
    Nullable(
      Str('A header that every request has, such as `Authorization`; null for none.', {
        pattern: '^[A-Za-z0-9!#$%&*+.^_|~-]+$',
        examples: ['Authorization'],
        maxLength: 100,
      }),
    ),
  ),
  header_value: Optional(
    Nullable(
      Str('Its value, which is stored encrypted. Absent keeps the stored value; null removes it.', {
        pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$',
        maxLength: SIGNING_SECRET_MAX_LENGTH,
      }),
    ),
  ),
  tools: List(LookupTool, 'The tools that models may call; no others.', { minItems: 1, maxItems: LOOKUP_TOOLS_MAX }),
})
export type LookupIn = Static<typeof LookupIn>

/** A saved look-up, without the value of its header. */
export const LookupOut = Closed('LookupOut', 'A look-up.', {
  id: Uuid('Constant for the life of the look-up.'),
  organization_id: Uuid('The organization that owns it.'),
  name: Str('Its name.'),
  kind: StringEnum(LOOKUP_KINDS, 'What it connects to.'),
  url: Str('The URL as entered.'),
  header_name: Nullable(Str('The header that every request has.')),
  has_header_value: Bool('Whether the header has a value.'),
  tools: List(LookupTool, 'The tools that models may call.'),
  created_at: DateTime('When it was first saved.'),
  updated_at: DateTime('When it was last changed.'),
  version: Int('Incremented by every save; a save may name the version that it edited.'),
})
export type LookupOut = Static<typeof LookupOut>

/** A call of a tool of a look-up. */
export const LookupCallIn = Closed('LookupCallIn', 'A call of a tool.', {
  tool: Str('The name of the tool.', { maxLength: 128 }),
  arguments: JsonObject('Its arguments.'),
  run_id: Optional(Nullable(Uuid('The run that calls it, for the log.'))),
})
export type LookupCallIn = Static<typeof LookupCallIn>

export const LookupCallOut = Closed('LookupCallOut', 'What a look-up answered.', {
  ok: Bool('Whether it answered with a result.'),
  status: Nullable(Int("The answer's HTTP status; null without one.")),
  text: Str('The text of the answer, without the header; if not `ok`, what was answered, or why there is nothing.'),
  bytes: Int('The size of the answer, as far as it was read.'),
  is_cut_off: Bool('Whether more followed that was not read.'),
  duration_ms: Int('The time of the requests.'),
})
export type LookupCallOut = Static<typeof LookupCallOut>

/** Bytes of the schema of a tool's arguments, as JSON: it is in every request to a model. */
const SCHEMA_MAX_BYTES = 16 * 1024
const MAX_PARAMETERS = 20
const PARAMETER_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/
const PARAMETER_TYPES = ['string', 'number', 'integer', 'boolean']
const PARAMETER_FIELDS = ['type', 'description', 'enum']

/** The parameters of a tool with `http`, of a schema that `findLookupErrors` accepts. */
export interface LookupParameter {
  readonly type: 'string' | 'number' | 'integer' | 'boolean'
  readonly description?: string
  readonly enum?: readonly unknown[]
}

/** The names in braces of a path. */
export function listPathParameters(path: string): string[] {
  return Array.from(path.matchAll(/\{([^{}]*)\}/g), ([, name = '']) => name)
}

/** Finds what the schema of a look-up cannot say: paths, parameters and names of its tools. */
export function findLookupErrors({ kind, tools, header_name, header_value }: LookupIn): FieldError[] {
  const errors: FieldError[] = []
  const report = (field: string, message: string): void => void errors.push({ field, code: 'value_error', message })
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}`
    const { parameters = {}, path } = tool
    const isTaken = tools.slice(0, index).some(({ name }) => name === tool.name)
    if (isTaken) report(`${at}.name`, 'is the name of another tool of the look-up')
    const unusable = findJsonObjectErrors(parameters, `${at}.parameters`)
    if (unusable.length > 0) errors.push(...unusable)
    else if (new TextEncoder().encode(JSON.stringify(parameters)).length > SCHEMA_MAX_BYTES) {
      report(`${at}.parameters`, `must have at most ${SCHEMA_MAX_BYTES} bytes`)
    } else if (kind === 'http') checkHttpTool(tool, (field, message) => report(`${at}.${field}`, message))
    else if (path !== undefined) report(`${at}.path`, 'must be absent with mcp')
  }
  if (typeof header_value === 'string' && typeof header_name !== 'string') {
    report('header_name', 'must be given with header_value')
  }
  if (typeof header_name === 'string' && FIXED_HEADERS.test(header_name)) {
    report('header_name', 'is set by the service: choose another one')
  }
  return errors
}

/** Headers that the client, the protocol or the connection sets. */
const FIXED_HEADERS =
  /^(?:host|connection|content-.*|transfer-encoding|accept.*|user-agent|te|trailer|upgrade|expect|proxy-.*|mcp-.*|last-event-id)$/i

function checkHttpTool({ path, parameters = {} }: LookupTool, report: (field: string, message: string) => void): void {
  if (path === undefined) return report('path', 'is required with http')
  const { type, properties = {}, required = [], ...others } = parameters
  const unknown = Object.keys(others).find((name) => name !== 'additionalProperties')
  if (unknown !== undefined) return report('parameters', `has ${unknown}, which is not supported`)
  if (Object.keys(parameters).length > 0 && type !== 'object')
    return report('parameters', 'must have the type "object"')
  if (!isJsonObject(properties)) return report('parameters.properties', 'must be an object')
  const isProperty = (name: unknown): boolean => typeof name === 'string' && Object.hasOwn(properties, name)
  const entries = Object.entries(properties)
  if (entries.length > MAX_PARAMETERS) report('parameters.properties', `must be at most ${MAX_PARAMETERS}`)
  for (const [name, schema] of entries) {
    const message = parameterError(name, schema)
    if (message !== undefined) report(`parameters.properties.${name}`, message)
  }
  if (!Array.isArray(required) || !required.every(isProperty)) {
    report('parameters.required', 'must be a list of names of properties')
  }
  for (const name of listPathParameters(path).filter((each) => !isProperty(each))) {
    report('path', `has {${name}}, which is no property of parameters`)
  }
  if (/[{}?#\\\s]/.test(path.replaceAll(/\{[^{}]*\}/g, ''))) {
    report('path', 'must not contain a single brace, "?", "#", a backslash or white space')
  }
}

function parameterError(name: string, schema: unknown): string | undefined {
  if (!PARAMETER_NAME.test(name)) return 'must have a name of letters, digits and underscores'
  if (!isJsonObject(schema)) return 'must be an object'
  if (!PARAMETER_TYPES.includes(schema['type'] as string)) return `must have a type of ${PARAMETER_TYPES.join(', ')}`
  const unknown = Object.keys(schema).find((field) => !PARAMETER_FIELDS.includes(field))
  if (unknown !== undefined) return `has ${unknown}, which is not supported`
  const { enum: values = [], description = '' } = schema
  if (typeof description !== 'string') return 'must have a text as its description'
  const isList = Array.isArray(values) && values.every((value) => isOfType(value, schema['type'] as string))
  return isList ? undefined : 'must have an enum of values of its type'
}

/** Whether a value is of a type of PARAMETER_TYPES. */
export function isOfType(value: unknown, type: string): boolean {
  return type === 'integer' ? Number.isSafeInteger(value) : typeof value === type
}

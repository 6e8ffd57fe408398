import type { ModelConversation, ModelMessage, ModelProtocol, ModelToolDefinition, ReadRequest } from './turn.ts'

type Fields = Readonly<Record<string, unknown>>

/** Rejects a request; the message is like that of a real API. */
export function reject(message: string): never {
  throw new Error(message)
}

/**
 * Checks what a request says as strictly as the strictest API, also for the others: a run sends the same tools and
 * messages to all of them.
 * @throws Error with a text close to that of an API
 */
export function checkRequest(
  { messages, tools }: ReadRequest,
  { resultsBy, allowsBlankTexts }: Pick<ModelProtocol, 'resultsBy' | 'allowsBlankTexts'>,
): ModelConversation {
  const conversation: ModelConversation = { instructions: '', messages: [], tools: tools.map(checkTool) }
  for (const { role, parts } of messages) {
    const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []))
    if (!allowsBlankTexts && texts.some((text) => text.trim() === ''))
      reject('messages: text content blocks must be non-empty')
    if (role === 'system' || role === 'developer') {
      conversation.instructions = joinTexts(conversation.instructions, ...texts)
      continue
    }
    if (role !== 'user' && role !== 'assistant') reject(`messages: the role '${role}' is unknown`)
    if (conversation.messages.at(-1)?.role !== role)
      conversation.messages.push({ role, text: '', calls: [], results: [] })
    const message = conversation.messages.at(-1)!
    message.text = joinTexts(message.text, ...texts)
    for (const part of parts) {
      if ('call' in part) message.calls.push(part.call)
      if ('result' in part) message.results.push(part.result)
      if ('file' in part) message.files = [...(message.files ?? []), part.file]
    }
  }
  const names = tools.map(({ name }) => name)
  if (new Set(names).size < names.length) reject('tools: names must be unique')
  checkOrder(conversation.messages, resultsBy)
  return conversation
}

function joinTexts(...texts: string[]): string {
  return texts.filter((text) => text !== '').join('\n')
}

/** Checks that the message after one with calls has exactly their results. */
function checkOrder(messages: readonly ModelMessage[], resultsBy: 'id' | 'name' = 'id'): void {
  if (messages[0]?.role !== 'user') reject('messages: must start with a user message')
  const ids = messages.flatMap(({ calls }) => calls.map(({ id }) => id))
  if (new Set(ids).size < ids.length) reject('messages: ids of calls must be unique')
  for (const [index, { role, calls, results, files = [] }] of messages.entries()) {
    if (role === 'user' && calls.length > 0) reject(`messages.${index}: only the assistant calls tools`)
    if (role === 'assistant' && files.length > 0) reject(`messages.${index}: only the user sends files`)
    const expected = (messages[index - 1]?.calls ?? []).map((call) => call[resultsBy]).toSorted()
    const found = results.map(({ id }) => id).toSorted()
    if (expected.join() !== found.join()) {
      reject(`messages.${index}: must have the results of the calls [${expected.join()}], not of [${found.join()}]`)
    }
  }
  if (messages.at(-1)?.role !== 'user') reject('messages: must end with a user message')
}

const TOOL_NAME = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/
const MAX_DESCRIPTION_LENGTH = 1_024

function checkTool({ name, description = '', schema }: ReadRequest['tools'][number]): ModelToolDefinition {
  if (!TOOL_NAME.test(name)) reject(`tools: the name '${name}' does not match the expected pattern ${TOOL_NAME}`)
  if (description.length > MAX_DESCRIPTION_LENGTH) {
    reject(`tools: the description of '${name}' is longer than ${MAX_DESCRIPTION_LENGTH} characters`)
  }
  checkSchema(schema, name, 1)
  if ((schema as Fields)['type'] !== 'object') reject(`${name}: schema must be a JSON Schema of 'type: "object"'`)
  return { name, description, schema: schema as Record<string, unknown> }
}

/** The keywords that Google's reference names for JSON schemas. */
const KEYWORDS = new Set(
  (
    '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum ' +
    'anyOf oneOf properties additionalProperties required propertyOrdering'
  ).split(' '),
)
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])
const PROPERTY_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/
const MAX_DEPTH = 32

function checkSchema(value: unknown, path: string, depth: number): void {
  if (typeof value !== 'object' || value === null) reject(`${path}: must be a schema`)
  if (depth > MAX_DEPTH) reject(`${path}: exceeds the maximum allowed nesting depth`)
  const schema = value as Fields
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
  if (unknown !== undefined) reject(`${path}: Unknown name "${unknown}": Cannot find field.`)
  const { type, properties = {}, required = [], items, anyOf = [] } = schema
  const types: unknown[] = [type ?? []].flat()
  const alternatives = anyOf as unknown[]
  if (!types.every((each) => TYPES.has(each))) reject(`${path}.type: is not a type of JSON Schema`)
  if (types.length + alternatives.length === 0) reject(`${path}: type or anyOf is required`)
  const fields = Object.entries(properties as Fields)
  const names = fields.map(([name]) => name)
  const wrong = names.find((name) => !PROPERTY_NAME.test(name))
  if (wrong !== undefined) reject(`${path}: Property keys should match pattern '${PROPERTY_NAME.source}' (${wrong})`)
  if (types.includes('object') && names.length === 0) reject(`${path}: should be non-empty for OBJECT type`)
  const undefinedName = (required as string[]).find((name) => !names.includes(name))
  if (undefinedName !== undefined) reject(`${path}.required: property is not defined (${undefinedName})`)
  if (types.includes('array') && items === undefined) reject(`${path}: array schema missing items`)
  for (const [name, field] of fields) checkSchema(field, `${path}.${name}`, depth + 1)
  for (const each of items === undefined ? alternatives : [items, ...alternatives]) checkSchema(each, path, depth + 1)
}

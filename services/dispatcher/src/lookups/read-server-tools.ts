import { setImmediate as nextTurn } from 'node:timers/promises'
import { findJsonObjectErrors, type LookupIn, type LookupTool, truncateText } from '@workflow-service/contract'
import { type ApiError, invalidFields } from '@workflow-service/service-kit'
import type { Redact } from '../deliveries/redact.ts'
import type { SendLookup } from './lookup-answer.ts'
import { listMcpTools, McpError } from './mcp-client.ts'

/** Characters of a tool's description, which a server gives. */
const DESCRIPTION_MAX_LENGTH = 1_000
const SCHEMA_MAX_BYTES = 16 * 1024
/** Names in the error for a tool that the server does not have. */
const NAMED_TOOLS = 50

type ServerTools = Awaited<ReturnType<typeof listMcpTools>>

/**
 * Asks a server of the Model Context Protocol for the wanted tools.
 * @throws ApiError 422 on `url` if the server does not list its tools; on the name of a tool that it does not have, or
 *   that it does not call read-only.
 */
export async function readServerTools(
  send: SendLookup,
  { url, tools }: Pick<LookupIn, 'url' | 'tools'>,
  redact: Redact,
): Promise<LookupTool[]> {
  const offered = await listTools(send, url, redact)
  const described: LookupTool[] = []
  for (const [index, { name }] of tools.entries()) {
    const refuse = (message: string): ApiError =>
      invalidFields([{ field: `tools.${index}.name`, code: 'value_error', message }])
    described.push(describeTool(offered, name, redact, refuse))
    // A schema takes milliseconds.
    await nextTurn()
  }
  return described
}

async function listTools(send: SendLookup, url: string, redact: Redact): Promise<ServerTools> {
  try {
    return await listMcpTools(send, url)
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    throw invalidFields([{ field: 'url', code: 'value_error', message: redact(error.message) }])
  }
}

/** The tool as the server describes it now: a later change of the server does not reach the model. */
function describeTool(
  tools: ServerTools,
  name: string,
  redact: Redact,
  refuse: (message: string) => ApiError,
): LookupTool {
  const tool = tools.find((each) => each.name === name)
  if (!tool) {
    const names = tools.slice(0, NAMED_TOOLS).map((each) => truncateText(each.name, 128))
    throw refuse(`is no tool of the server. Its tools are: ${redact(names.join(', ')) || 'none'}`)
  }
  const { readOnlyHint, destructiveHint } = tool.annotations ?? {}
  // Without `readOnlyHint`, a tool may change something (Model Context Protocol, `ToolAnnotations`).
  if (readOnlyHint !== true || destructiveHint === true) {
    throw refuse('may change something: look-ups call only tools whose annotations have "readOnlyHint": true')
  }
  const parameters: Record<string, unknown> = { ...tool.inputSchema }
  delete parameters['$schema']
  const isTooLarge = Buffer.byteLength(JSON.stringify(parameters)) > SCHEMA_MAX_BYTES
  if (isTooLarge || findJsonObjectErrors(parameters, 'parameters').length > 0) {
    throw refuse(`has arguments whose schema has more than ${SCHEMA_MAX_BYTES} bytes, or is too deep`)
  }
  const given = truncateText((tool.description ?? '').toWellFormed().replaceAll('\0', ''), DESCRIPTION_MAX_LENGTH)
  const description = truncateText(redact(given), DESCRIPTION_MAX_LENGTH)
  return { name, description, parameters: mapTexts(parameters, redact) as Record<string, unknown> }
}

/** Maps the texts in a value of JSON, also the names of fields. */
function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [map(name), mapTexts(of, map)]))
}

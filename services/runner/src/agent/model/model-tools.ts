import { derivePayloadSchema, truncateText } from '@workflow-service/contract'
import { jsonSchema, tool, type ToolSet } from 'ai'
import type { AgentFile, AgentRun, AgentWebhookSource } from '../agent.ts'
import { markUntrusted } from '../untrusted-text.ts'
import { toToolSchema } from './tool-schema.ts'

/** All APIs accept tool names of this length. */
const MAX_TOOL_NAME_LENGTH = 64
/** Characters of an example in a tool's description. The tool's schema is never shortened. */
const MAX_EXAMPLE_LENGTH = 4_000
/** Characters that one call of read_file returns. */
const FILE_PAGE_LENGTH = 20_000

/** The tools of one run: one per webhook source, and two for the workflow's files if it has any. */
export interface Toolbox {
  /** Tools for the AI SDK, without `execute`: the agent executes the calls itself and writes them to the journal. */
  readonly definitions: ToolSet
  /** The tool of that name; undefined when there is none. */
  find(name: string): ToolEntry | undefined
  /** The name of the webhook source, or a placeholder if it was deleted. */
  sourceName(sourceId: string): string
  /** Converts the arguments of a webhook source's tool to a payload. */
  toPayload(sourceId: string, args: Record<string, unknown>): Record<string, unknown>
}

export type ToolEntry = { readonly kind: 'source'; readonly source: AgentWebhookSource } | { readonly kind: 'files' }

/** Creates the tools. */
export function createToolbox(sources: readonly AgentWebhookSource[], files: readonly AgentFile[]): Toolbox {
  const entries = new Map<string, ToolEntry>()
  const definitions: ToolSet = {}
  for (const source of sources) {
    const name = uniqueToolName(source.name, entries)
    const { schema } = toToolSchema(derivePayloadSchema(source.exampleRequestBody))
    entries.set(name, { kind: 'source', source })
    definitions[name] = tool({ description: describeSource(source), inputSchema: jsonSchema(schema) })
  }
  if (files.length > 0) {
    for (const [name, definition] of Object.entries(fileTools)) {
      entries.set(name, { kind: 'files' })
      definitions[name] = definition
    }
  }
  const bySourceId = new Map(sources.map((source) => [source.id, source]))
  return {
    definitions,
    find: (name) => entries.get(name),
    sourceName: (sourceId) => bySourceId.get(sourceId)?.name ?? 'a deleted webhook source',
    toPayload(sourceId, args) {
      const source = bySourceId.get(sourceId)
      // A source that was deleted meanwhile: the dispatcher refuses the delivery.
      return source ? toToolSchema(derivePayloadSchema(source.exampleRequestBody)).toPayload(args) : args
    },
  }
}

const fileTools = {
  list_files: tool({
    description: "Lists the workflow's files by their paths.",
    inputSchema: jsonSchema({ type: 'object', properties: {}, additionalProperties: false }),
  }),
  read_file: tool({
    description: `Reads one of the workflow's files, ${FILE_PAGE_LENGTH} characters at a time.`,
    inputSchema: jsonSchema({
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The path, as list_files gives it.' },
        offset: { type: 'integer', minimum: 0, description: 'How many characters to skip; 0 if left out.' },
      },
      required: ['path'],
      additionalProperties: false,
    }),
  }),
} satisfies ToolSet

/** Executes `list_files` or `read_file`. Both only read, so they are safe to repeat after a crash. */
export async function runFileTool(
  run: AgentRun,
  name: string,
  args: Record<string, unknown>,
): Promise<{ ok: boolean; text: string }> {
  const files = await run.listFiles()
  const paths = files.map(pathOf)
  if (name === 'list_files') return { ok: true, text: markUntrusted('file list', paths.join('\n')) }
  const { path, offset = 0 } = args
  const file = files.find((candidate) => pathOf(candidate) === path)
  const content = file ? await run.readFile(file.id) : undefined
  if (content === undefined) {
    return { ok: false, text: 'There is no such file. list_files gives the paths of all files.' }
  }
  const characters = Array.from(content)
  if (typeof offset !== 'number' || !Number.isInteger(offset) || offset < 0 || offset > characters.length) {
    return { ok: false, text: `offset must be a whole number from 0 to ${characters.length}, the file's length.` }
  }
  const end = Math.min(offset + FILE_PAGE_LENGTH, characters.length)
  const rest = characters.length - end
  const more = rest > 0 ? `\n${rest} more characters follow; read on with offset ${end}.` : ''
  return { ok: true, text: `${markUntrusted('file', characters.slice(offset, end).join(''))}${more}` }
}

function pathOf(file: AgentFile): string {
  return [...file.path, file.name].join('/')
}

/** A name such as `send_to_order_intake` that all APIs accept. The same sources always get the same names. */
function uniqueToolName(sourceName: string, taken: ReadonlyMap<string, unknown>): string {
  const words =
    sourceName
      .normalize('NFKD')
      .replace(/\p{M}+/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/gu) ?? []
  const base = `send_to_${words.join('_') || 'source'}`
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `_${number}`
    const name = base.slice(0, MAX_TOOL_NAME_LENGTH - suffix.length) + suffix
    if (!taken.has(name)) return name
  }
}

function describeSource({ name, description, exampleRequestBody, exampleError }: AgentWebhookSource): string {
  if (exampleError !== undefined) return `Cannot send to the webhook source ${JSON.stringify(name)}: ${exampleError}.`
  const example = truncateText(JSON.stringify(exampleRequestBody), MAX_EXAMPLE_LENGTH)
  return [
    `Sends a payload to the webhook source ${JSON.stringify(name)}: one request, at once.`,
    description,
    `The example shows the form of every payload; its values are made up, never send them: ${example}`,
  ]
    .filter((line) => line !== '')
    .join('\n')
}

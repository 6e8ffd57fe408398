import {
  derivePayloadSchema,
  END_RUN,
  isJsonObject,
  type LookupCallStep,
  mediaTypeOf,
  type SendAgain,
  toStorableText,
  truncateText,
} from '@workflow-service/contract'
import { SEARCH_SOURCES } from '@workflow-service/contract/system-text'
import { markUntrusted } from '@workflow-service/contract/untrusted-text'
import { jsonSchema, type JSONSchema7, tool, type ToolSet } from 'ai'
import type { LookupForAgent, SourceForAgent, WorkflowFile } from '@workflow-service/database'
import type { AgentRun, DeliveryCall } from '../agent.ts'
import { LOOKUP_NOTE } from './look-up.ts'
import { toLookupSchema, type ToolSchema, toToolSchema } from './tool-schema.ts'

/** All APIs accept tool names of this length. */
const MAX_TOOL_NAME_LENGTH = 64
/** Characters of a tool's description: OpenAI refuses more than 1,024. */
const MAX_TOOL_DESCRIPTION_LENGTH = 1_000
/** Characters of a source's description in that of its tool. */
const MAX_SOURCE_DESCRIPTION_LENGTH = 400
/** Characters that one call of read_file returns. */
const FILE_PAGE_LENGTH = 20_000

/** Webhook sources that one search finds. */
const MAX_FOUND_SOURCES = 10
const MAX_SEARCH_WORDS = 20
/** The rest of a query is left out: it may be as long as an answer, and finding its words takes time. */
const MAX_QUERY_LENGTH = 1_000
/** Characters of a found source's description; its tool has all of it. */
const MAX_FOUND_DESCRIPTION_LENGTH = 300

/** The tool that sends a payload again which may have arrived. */
export const SEND_AGAIN = 'send_again'
/** Characters of the reason to send a payload again. */
const MAX_REASON_LENGTH = 500

/** Where the tool of a source sends, or what that of a look-up calls. */
interface ToolTarget extends Pick<ToolSchema, 'toPayload'> {
  readonly source?: SourceForAgent
  readonly lookup?: LookupCallStep
}

/** The tools of one run: one per webhook source, those that read, and `end_run`. */
export type Toolbox = ReturnType<typeof createToolbox>

/**
 * Creates the tools: those for files if there are any, the search if `hasSearch`, and one to send these deliveries
 * again.
 */
export function createToolbox(
  sources: readonly SourceForAgent[],
  files: readonly WorkflowFile[],
  {
    hasSearch = false,
    again = [],
    lookups = [],
  }: {
    readonly hasSearch?: boolean
    readonly again?: readonly DeliveryCall[]
    readonly lookups?: readonly LookupForAgent[]
  } = {},
) {
  // The tools that no search changes come first: providers cache the beginning of a prompt.
  const definitions: ToolSet = { ...endTools, ...(files.length > 0 && fileTools), ...(hasSearch && searchTools) }
  const notes = lookups.length > 0 ? [LOOKUP_NOTE] : []
  const targets = new Map<string, ToolTarget>()
  for (const lookup of lookups) {
    for (const each of lookup.tools) {
      const name = uniqueToolName('look_up', `${lookup.name} ${each.name}`, definitions)
      const { schema, toPayload } = toLookupSchema(each.parameters ?? {})
      const text = `Looks something up in ${JSON.stringify(lookup.name)}. It only reads. ${each.description ?? ''}`
      const description = truncateText(text, MAX_TOOL_DESCRIPTION_LENGTH)
      definitions[name] = tool({ description, inputSchema: jsonSchema(schema) })
      targets.set(name, { lookup: { id: lookup.id, name: lookup.name, tool: each.name }, toPayload })
    }
  }
  for (const source of sources) {
    const name = uniqueToolName('send_to', source.name, definitions)
    const { text, showsExample, note } = describeSource(source, name)
    if (note !== null) notes.push(note)
    const example = showsExample ? undefined : source.exampleRequestBody
    const { schema, toPayload } = toToolSchema(derivePayloadSchema(source.exampleRequestBody), example)
    definitions[name] = tool({ description: text, inputSchema: jsonSchema(schema) })
    targets.set(name, { source, toPayload })
  }
  return {
    /** Tools for the AI SDK, without `execute`: the agent executes the calls itself and writes them to the journal. */
    definitions: { ...definitions, ...(again.length > 0 && sendAgainTools(again)) },
    /** Lines of the system text, such as descriptions of sources that are too long for their tools; may be empty. */
    notes: notes.join('\n'),
    /** Undefined for a tool that neither sends nor looks up. */
    target: (name: string) => targets.get(name),
  }
}

const ENDINGS = ['done', 'nothing_to_do', 'failed'] as const

/** How the model ended the run. */
export interface Ending {
  readonly status: (typeof ENDINGS)[number]
  readonly reason: string
}

/** A tool whose arguments are these fields. */
function defineTool(
  description: string,
  properties: Readonly<Record<string, JSONSchema7>>,
  required: string[] = Object.keys(properties),
): ToolSet[string] {
  const schema = { type: 'object' as const, properties, additionalProperties: false }
  return tool({ description, inputSchema: jsonSchema(required.length > 0 ? { ...schema, required } : schema) })
}

const endTools = {
  [END_RUN]: defineTool(
    'Ends the run. Call it once, after the results of all other calls are known. Nothing can be done after it.',
    {
      status: {
        type: 'string',
        enum: [...ENDINGS],
        description:
          'done: everything that the workflow asks for was accepted. nothing_to_do: it asks for no payload this time. failed: the task, or a part of it, could not be done.',
      },
      reason: { type: 'string', description: 'What was done, or why not, in one or two sentences.' },
    },
  ),
} satisfies ToolSet

/** Reads the arguments of `end_run`; undefined if they are not valid. */
export function readEnding(args: unknown): Ending | undefined {
  const { status, reason } = isJsonObject(args) ? args : {}
  const known = ENDINGS.find((ending) => ending === status)
  return known === undefined || typeof reason !== 'string' ? undefined : { status: known, reason }
}

function sendAgainTools(deliveries: readonly DeliveryCall[]): ToolSet {
  return {
    [SEND_AGAIN]: defineTool(
      'Sends the payload of a delivery again which failed, but may have arrived: the endpoint may then act twice. Call it only if the workflow asks for it or if that does no harm.',
      {
        delivery_id: {
          type: 'string',
          enum: deliveries.map(({ delivery }) => delivery.id),
          description: 'The delivery that failed.',
        },
        reason: {
          type: 'string',
          description:
            'Why the payload is sent although it may have arrived, in one sentence for the people who read the log.',
        },
      },
    ),
  }
}

/** Reads the arguments of `send_again`; undefined if they are not valid. */
export function readSendAgain(args: unknown): SendAgain | undefined {
  const { delivery_id, reason } = isJsonObject(args) ? args : {}
  if (typeof delivery_id !== 'string' || typeof reason !== 'string' || reason.trim() === '') return undefined
  return { delivery_id, reason: truncateText(toStorableText(reason.trim()), MAX_REASON_LENGTH) }
}

const searchTools = {
  [SEARCH_SOURCES]: defineTool(
    `Finds webhook sources that have no tool yet, by words of their names and descriptions. Those found, ${MAX_FOUND_SOURCES} at most, get a tool.`,
    { query: { type: 'string', description: 'The words to look for.' } },
  ),
} satisfies ToolSet

const fileTools = {
  list_files: defineTool(
    "Lists the workflow's files by their paths.",
    // Google refuses tools without parameters.
    { folder: { type: 'string', description: 'Lists only the files in this folder; all if left out.' } },
    [],
  ),
  read_file: defineTool(
    `Reads one of the workflow's files, ${FILE_PAGE_LENGTH} characters at a time.`,
    {
      path: { type: 'string', description: 'The path, as list_files gives it.' },
      offset: { type: 'integer', minimum: 0, description: 'How many characters to skip; 0 if left out.' },
    },
    ['path'],
  ),
} satisfies ToolSet

/** Executes a tool that reads: it is safe to repeat after a crash. */
export async function runReadingTool(run: AgentRun, name: string, args: Record<string, unknown>) {
  return name === SEARCH_SOURCES ? await searchSources(run, args) : await runFileTool(run, name, args)
}

async function searchSources(run: AgentRun, { query }: Record<string, unknown>) {
  const text = typeof query === 'string' ? query.slice(0, MAX_QUERY_LENGTH) : ''
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const found = await run.searchSources([...new Set(words)].slice(0, MAX_SEARCH_WORDS), MAX_FOUND_SOURCES)
  if (found.length === 0) return { ok: false, text: 'No webhook source has one of these words. Try other words.' }
  const lines = found.map(
    (source) => `- ${JSON.stringify(source.name)}: ${truncateText(source.description, MAX_FOUND_DESCRIPTION_LENGTH)}`,
  )
  return {
    ok: true,
    text: `These webhook sources have a tool from now on:\n${lines.join('\n')}`,
    found_source_ids: found.map(({ id }) => id),
  }
}

async function runFileTool(run: AgentRun, name: string, args: Record<string, unknown>) {
  const { sessionId } = run
  const files = await run.listFiles()
  const paths = files.map(pathOf)
  if (name === 'list_files') {
    const { folder } = args
    const prefix = typeof folder === 'string' && folder !== '' ? `${folder.replace(/(?<!\/)\/+$/u, '')}/` : ''
    const listed = paths.filter((path) => path.startsWith(prefix))
    return { ok: true, text: markUntrusted('file list', listed.join('\n'), sessionId) }
  }
  const { path, offset = 0 } = args
  const file = files.find((candidate) => pathOf(candidate) === path)
  if (file && mediaTypeOf(file.name)) {
    const text = `It is a PDF or an image: it is attached to the first message if that refers to it as @${pathOf(file)}, and cannot be read otherwise.`
    return { ok: false, text }
  }
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
  return { ok: true, text: `${markUntrusted('file', characters.slice(offset, end).join(''), sessionId)}${more}` }
}

/** The path of a file, as its tools and references name it. */
export function pathOf(file: WorkflowFile): string {
  return [...file.path, file.name].join('/')
}

/** A name such as `send_to_order_intake` that all APIs accept. The same titles always get the same names. */
function uniqueToolName(verb: string, title: string, taken: ToolSet): string {
  const words =
    title
      .normalize('NFKD')
      .replace(/\p{M}+/gu, '')
      .toLowerCase()
      .match(/[a-z0-9]+/gu) ?? []
  const base = `${verb}_${words.join('_') || 'source'}`
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : `_${number}`
    const name = base.slice(0, MAX_TOOL_NAME_LENGTH - suffix.length) + suffix
    if (!Object.hasOwn(taken, name)) return name
  }
}

/**
 * Describes a tool within MAX_TOOL_DESCRIPTION_LENGTH. An example that does not fit is shown by the descriptions of the
 * fields (`showsExample` is false), and a source's description that does not fit by the instructions (`note`).
 */
function describeSource(
  { name, description, exampleRequestBody }: SourceForAgent,
  toolName: string,
): { text: string; showsExample: boolean; note: string | null } {
  const isLong = description.length > MAX_SOURCE_DESCRIPTION_LENGTH
  const lines = [
    `Sends a payload to the webhook source ${JSON.stringify(name)}: one request, at once.`,
    ...(isLong ? ['The instructions describe it.'] : description === '' ? [] : [description]),
  ]
  const example = `The example shows the form of every payload; its values are made up, never send them: ${JSON.stringify(exampleRequestBody)}`
  const showsExample = [...lines, example].join('\n').length <= MAX_TOOL_DESCRIPTION_LENGTH
  if (!showsExample) lines.push('The values in the descriptions of the fields are made up, never send them.')
  else lines.push(example)
  const text = truncateText(lines.join('\n'), MAX_TOOL_DESCRIPTION_LENGTH)
  return { text, showsExample, note: isLong ? `- ${toolName}: ${description}` : null }
}

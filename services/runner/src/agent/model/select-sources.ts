import { findNamedSources } from '@workflow-service/contract'
import type { AgentRun, AgentSourceName, AgentWebhookSource } from '../agent.ts'
import { readInParts } from '../read-in-parts.ts'

/** Up to this number, each source has a tool. Of more sources, only those have one that the description names or a search found. */
export const MAX_UNNAMED_SOURCES = 20
/** OpenAI accepts at most 128 tools; the margin is for the other tools and for APIs with lower limits. */
export const MAX_SOURCE_TOOLS = 100
/** The examples of all tools together, as JSON: their schemas are in every request to the model. */
const MAX_EXAMPLE_BYTES = 2 * 1_048_576

/** The webhook sources that a model can use in a run. */
export interface SelectedSources {
  /** Those with a tool. */
  readonly available: readonly AgentWebhookSource[]
  /** Those without one; a search finds them. */
  readonly leftOut: readonly AgentSourceName[]
}

/**
 * Selects the sources that get tools: all of a few; of many, those that the workflow's description names, then those that searches
 * found, which are in the journal.
 */
export async function selectSources(
  run: Pick<AgentRun, 'run' | 'listSources' | 'readSources'>,
  foundIds: readonly string[] = [],
): Promise<SelectedSources> {
  const sources = await run.listSources()
  const byId = new Map(sources.map((source) => [source.id, source]))
  const named = findNamedSources(run.run.workflow.description, sources)
  const found = foundIds.flatMap((id) => byId.get(id) ?? [])
  const unnamed = sources.length <= MAX_UNNAMED_SOURCES ? sources : []
  const inOrder = [...new Set([...named, ...found, ...unnamed])]
  const available: AgentWebhookSource[] = []
  let bytes = 0
  for await (const source of readInParts(run, inOrder.slice(0, MAX_SOURCE_TOOLS))) {
    bytes += Buffer.byteLength(JSON.stringify(source.exampleRequestBody))
    if (bytes > MAX_EXAMPLE_BYTES) break
    available.push(source)
  }
  const availableIds = new Set(available.map(({ id }) => id))
  return { available, leftOut: sources.filter(({ id }) => !availableIds.has(id)) }
}

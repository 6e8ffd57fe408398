import { findNamedSources } from '@workflow-service/contract'
import type { AgentRun, AgentSourceName, AgentWebhookSource } from '../agent.ts'
import { readInParts } from '../read-in-parts.ts'

/** OpenAI accepts at most 128 tools; the margin is for the file tools and for APIs with lower limits. */
const MAX_SOURCE_TOOLS = 100
/** The examples of all tools together, as JSON: their schemas are in every request to the model. */
const MAX_EXAMPLE_BYTES = 2 * 1_048_576

/** The webhook sources that a model can use in a run. */
export interface SelectedSources {
  readonly available: readonly AgentWebhookSource[]
  /** Those that have no tool, since a model would not accept all of them. */
  readonly leftOut: readonly AgentSourceName[]
}

/** Selects the sources for a model: those that the workflow's description names first, then the others by name. */
export async function selectSources(
  run: Pick<AgentRun, 'run' | 'listSources' | 'readSources'>,
): Promise<SelectedSources> {
  const sources = await run.listSources()
  const inOrder = [...new Set([...findNamedSources(run.run.workflow.description, sources), ...sources])]
  const available: AgentWebhookSource[] = []
  let bytes = 0
  for await (const source of readInParts(run, inOrder.slice(0, MAX_SOURCE_TOOLS))) {
    bytes += Buffer.byteLength(JSON.stringify(source.exampleRequestBody))
    if (bytes > MAX_EXAMPLE_BYTES) break
    available.push(source)
  }
  const availableIds = new Set(available.map(({ id }) => id))
  return { available, leftOut: inOrder.filter(({ id }) => !availableIds.has(id)) }
}

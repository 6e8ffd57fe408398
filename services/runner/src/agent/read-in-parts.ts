import type { SourceName } from '@workflow-service/database'
import { type AgentRun, type AgentWebhookSource, SOURCES_PER_READ } from './agent.ts'

/**
 * Reads the sources in their order, a few at a time, so that a run does not have the examples of all of them in memory.
 */
export async function* readInParts(
  run: Pick<AgentRun, 'readSources'>,
  sources: readonly SourceName[],
): AsyncGenerator<AgentWebhookSource> {
  for (let start = 0; start < sources.length; start += SOURCES_PER_READ) {
    yield* await run.readSources(sources.slice(start, start + SOURCES_PER_READ).map(({ id }) => id))
  }
}

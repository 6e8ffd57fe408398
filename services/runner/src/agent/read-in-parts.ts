import type { SourceForAgent, SourceName } from '@workflow-service/database'
import type { AgentRun } from './agent.ts'

/** How many sources one call reads: an example has at most 64 KiB. */
export const SOURCES_PER_READ = 16

/**
 * Reads the sources in their order, a few at a time, so that a run does not have the examples of all of them in memory.
 */
export async function* readInParts(
  run: Pick<AgentRun, 'readSources'>,
  sources: readonly SourceName[],
): AsyncGenerator<SourceForAgent> {
  for (let start = 0; start < sources.length; start += SOURCES_PER_READ) {
    yield* await run.readSources(sources.slice(start, start + SOURCES_PER_READ).map(({ id }) => id))
  }
}

import type { AgentRun } from './agent.ts'

/** What the run was started with, for the journal: the trigger's input message followed by the context. */
export function startText({ inputMessage, context }: Pick<AgentRun['run'], 'inputMessage' | 'context'>): string {
  return [inputMessage, context].filter((text) => text !== '').join('\n\n')
}

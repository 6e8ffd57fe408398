import type { AgentRun } from './agent.ts'

/** The text that a run was started with: the trigger's input message, then the context. */
export function startText({ inputMessage, context }: Pick<AgentRun['run'], 'inputMessage' | 'context'>): string {
  return [inputMessage, context].filter((text) => text !== '').join('\n\n')
}

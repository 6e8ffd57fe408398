import type { AgentConfig } from './agent-settings.ts'
import { RunError } from '../run-errors.ts'
import type { Agent } from './agent.ts'
import { BUILTIN, createBuiltinAgent } from './builtin-agent.ts'
import type { AgentHooks } from './model-agent.ts'

/**
 * The agent that AGENT_MODEL names. A run that another agent began before a restart with other settings is finished as
 * it was begun: the builtin agent is always there; a run that a model began continues with the model that is set now,
 * and fails with `agent_changed` when none is.
 */
export function createAgent(config: AgentConfig, hooks: AgentHooks = {}): Agent {
  const builtin = createBuiltinAgent()
  const chosen = config.kind === 'model' ? loadModelAgent(config, hooks) : Promise.resolve(builtin)
  return async (run) => {
    const first = run.steps.find((step) => step.kind === 'message')
    const isBegunByBuiltin = first?.data.agent === BUILTIN
    if (first && !isBegunByBuiltin && config.kind === 'builtin') {
      throw new RunError('agent_changed', `${first.data.agent} began this run, but AGENT_MODEL is ${BUILTIN} by now`)
    }
    const agent = isBegunByBuiltin ? builtin : await chosen
    await agent(run)
  }
}

/** The AI SDK takes some 15 MiB and a fifth of a second to load: only where a model is set. */
async function loadModelAgent(config: Extract<AgentConfig, { kind: 'model' }>, hooks: AgentHooks): Promise<Agent> {
  const { createModelAgent } = await import('./model-agent.ts')
  return createModelAgent(config, hooks)
}

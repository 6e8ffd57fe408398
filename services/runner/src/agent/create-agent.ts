import { NOT_AVAILABLE, RunError } from '../run-errors.ts'
import type { AgentConfig } from './agent-settings.ts'
import type { Agent } from './agent.ts'
import { BUILTIN, createBuiltinAgent } from './builtin/builtin-agent.ts'
import type { AgentHooks } from './model/model-agent.ts'

/**
 * Creates the agent that AGENT_MODEL selects. A run that began under another AGENT_MODEL ends as follows: one that the
 * built-in agent began is finished by the built-in agent; one that a model began continues with the current model, and
 * fails with `agent_changed` when there is none.
 */
export function createAgent(config: AgentConfig, hooks: AgentHooks = {}): Agent {
  const builtin = createBuiltinAgent()
  const selected = config.kind === 'model' ? loadModelAgent(config, hooks) : Promise.resolve(builtin)
  return async (run) => {
    const beginning = run.steps.find((step) => step.kind === 'message')
    const isFromBuiltin = beginning?.data.agent === BUILTIN
    if (beginning && !isFromBuiltin && config.kind === 'builtin') {
      const error = `${beginning.data.agent} began this run, but AGENT_MODEL is now ${BUILTIN}`
      hooks.logger?.warn({ run_id: run.run.id, organization_id: run.run.organizationId, error }, 'model.missing')
      throw new RunError('agent_changed', NOT_AVAILABLE)
    }
    const agent = isFromBuiltin ? builtin : await selected
    return agent(run)
  }
}

/** Imports the AI SDK only where a model is set: it takes about 15 MiB of memory and 0.2 s to load. */
async function loadModelAgent(config: Extract<AgentConfig, { kind: 'model' }>, hooks: AgentHooks): Promise<Agent> {
  const { createModelAgent } = await import('./model/model-agent.ts')
  return createModelAgent(config, hooks)
}

/**
 * Checks what only the package of the model's provider can check.
 * @throws SettingsError
 */
export async function checkAgent(config: AgentConfig): Promise<void> {
  if (config.kind === 'builtin') return
  const { checkModelOptions } = await import('./model/check-options.ts')
  await checkModelOptions(config)
}

import { NOT_AVAILABLE, RunError } from '../run-errors.ts'
import { type AgentConfig, BUILTIN, isOfferedTo, type ModelConfig } from './agent-settings.ts'
import type { Agent } from './agent.ts'
import { builtinAgent } from './builtin/builtin-agent.ts'
import type { AgentHooks } from './model/model-agent.ts'

/**
 * Creates the agent that executes each run with what its workflow chooses: a model by name, the built-in agent, or the
 * default of the settings. A run that the built-in agent began is finished by it. A run that a model began continues
 * with the model that is chosen now, and fails with `agent_changed` if that is the built-in agent.
 */
export function createAgent(config: AgentConfig, hooks: AgentHooks = {}): Agent {
  const modelAgents = new Map<string, Promise<Agent>>()
  const load = (model: ModelConfig): Promise<Agent> => {
    const agent = loadModelAgent(listFallbacks(config, model), hooks)
    modelAgents.set(model.name, agent)
    // A process without free file descriptors, for example, may load it at the next attempt.
    agent.catch(() => modelAgents.delete(model.name))
    return agent
  }
  return async (run) => {
    const beginning = run.steps.find((step) => step.kind === 'message')
    if (beginning?.data.agent === BUILTIN) return await builtinAgent(run)
    const chosen = run.workflow.model ?? config.defaultModel
    const fail = (code: string, error: string, message: string): never => {
      const { id: run_id, organizationId: organization_id } = run
      hooks.logger?.warn({ run_id, organization_id, error }, 'model.missing')
      throw new RunError(code, message)
    }
    if (chosen === BUILTIN) {
      if (!beginning) return await builtinAgent(run)
      return fail('agent_changed', `${beginning.data.agent} began this run, but now it has ${BUILTIN}`, NOT_AVAILABLE)
    }
    const model = config.models.get(chosen)
    if (!model || !isOfferedTo(model, run)) {
      const text = `The workflow uses the model ${chosen}, which this service does not have; choose another one`
      return fail('model_not_offered', `No model ${chosen} for this organization in AGENT_MODELS`, text)
    }
    return (await (modelAgents.get(chosen) ?? load(model)))(run)
  }
}

/** The model, its fallback, the fallback of that, and so on. */
function listFallbacks({ models }: Pick<AgentConfig, 'models'>, first: ModelConfig): ModelConfig[] {
  const fallback = first.fallback === null ? undefined : models.get(first.fallback)
  return [first, ...(fallback ? listFallbacks({ models }, fallback) : [])]
}

/** Imports the AI SDK only when a run uses a model: it takes memory, and time to load. */
async function loadModelAgent(models: readonly ModelConfig[], hooks: AgentHooks): Promise<Agent> {
  const { createModelAgent } = await import('./model/model-agent.ts')
  return createModelAgent(models, hooks)
}

/**
 * Checks what only the packages of the models' providers can check.
 * @throws SettingsError
 */
export async function checkAgent({ models }: AgentConfig): Promise<void> {
  if (models.size === 0) return
  const { checkModelOptions } = await import('./model/check-options.ts')
  await checkModelOptions([...models.values()])
}

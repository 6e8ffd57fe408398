import { type AgentConfig } from './agent-settings.ts'
import { type Agent, RunError } from './agent.ts'
import { BUILTIN, createBuiltinAgent } from './builtin-agent.ts'
import { type AgentHooks, createModelAgent } from './model-agent.ts'

/**
 * The agent that AGENT_MODEL names. A run that another agent began before a restart with other settings is finished as
 * it was begun: the builtin agent is always there; a run that a model began continues with the model that is set now,
 * and fails with `agent_changed` when none is.
 */
export function createAgent(config: AgentConfig, hooks: AgentHooks = {}): Agent {
  const builtin = createBuiltinAgent()
  const chosen = config.kind === 'model' ? createModelAgent(config, hooks) : builtin
  return async (run) => {
    const first = run.steps.find((step) => step.kind === 'message')
    const begunByBuiltin = first?.data.agent === BUILTIN
    if (first && !begunByBuiltin && config.kind === 'builtin') {
      throw new RunError('agent_changed', `${first.data.agent} began this run, but AGENT_MODEL is ${BUILTIN} by now`)
    }
    await (begunByBuiltin ? builtin : chosen)(run)
  }
}

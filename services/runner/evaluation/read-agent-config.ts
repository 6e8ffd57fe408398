import { readSettings } from '@workflow-service/service-kit'
import { Type } from 'typebox'
import {
  type AgentConfig,
  agentSettings,
  agentSettingsParsers,
  agentSettingsRules,
  toAgentConfig,
} from '../src/agent/agent-settings.ts'

const AgentSettingsSchema = Type.Object(agentSettings, agentSettingsRules)

/**
 * Reads the agent's settings, without the runner's others.
 * @throws SettingsError with all errors at once.
 */
export function readAgentConfig(env: NodeJS.ProcessEnv): AgentConfig {
  return toAgentConfig(readSettings(AgentSettingsSchema, env, { parsers: agentSettingsParsers }))
}

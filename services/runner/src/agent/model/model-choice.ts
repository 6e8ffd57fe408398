import { createHash } from 'node:crypto'
import type { Tracing } from '@workflow-service/service-kit'
import { isOfferedTo, type ModelConfig } from '../agent-settings.ts'
import type { AgentRun, OwnModelKey } from '../agent.ts'
import { createAskModel } from './ask-model.ts'
import { unreadableKey } from './model-error.ts'
import type { ModelClock, UsableModel } from './model-run.ts'

/**
 * Creates the function that gives a run the first of the models, with its fallbacks. Runs share what is known of an
 * outage of a model's API, but not those with own keys for it.
 */
export function createModelChoice(
  models: readonly ModelConfig[],
  hooks: { readonly fetch?: typeof fetch; readonly tracing?: Tracing },
  clock: Pick<ModelClock, 'now'>,
): (run: Pick<AgentRun, 'organizationId' | 'isOfOneModel'>, keys: readonly OwnModelKey[]) => UsableModel {
  const toUsable = (config: ModelConfig, fallback: UsableModel | undefined, ownKey?: string): UsableModel => {
    const ask = createAskModel(config, clock.now, hooks.fetch, hooks.tracing)
    const model = `${config.provider}:${config.modelName}`
    const pace = `${model} ${ownKey ?? fingerprint([config.baseUrl, config.apiKey, config.aws])}`
    return { config, model, pace, ask, outage: { sinceMs: null }, fallback }
  }
  const shared = models.reduceRight<UsableModel | undefined>((after, config) => toUsable(config, after), undefined)
  if (!shared) throw new TypeError('A model is needed')
  /** The model and the fallbacks that the organization may use, with its own keys where it has some. */
  const ofOrganization = (
    usable: UsableModel,
    run: Pick<AgentRun, 'organizationId'>,
    keys: readonly OwnModelKey[],
  ): UsableModel => {
    let { fallback } = usable
    while (fallback && !isOfferedTo(fallback.config, run)) ({ fallback } = fallback)
    fallback &&= ofOrganization(fallback, run, keys)
    const own = keys.find(({ model }) => model === usable.config.name)
    if (!own) return { ...usable, fallback }
    const config = { ...usable.config, apiKey: own.key, isOwnKey: true }
    const withKey = toUsable(config, fallback, own.id)
    return own.key === null ? { ...withKey, ask: () => Promise.reject(unreadableKey(config)) } : withKey
  }
  return (run, keys) => ofOrganization(run.isOfOneModel ? { ...shared, fallback: undefined } : shared, run, keys)
}

/** Distinguishes the accounts and addresses of one model. Database and log get no part of a key. */
function fingerprint(account: unknown): string {
  return createHash('sha256').update(JSON.stringify(account)).digest('hex').slice(0, 8)
}

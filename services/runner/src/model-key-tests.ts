import { claimModelKeyTest, type ModelKey, recordModelKeyTest, type SecretBox } from '@workflow-service/database'
import { type RepeatedTask, repeat } from '@workflow-service/service-kit'
import type { RunnerContext } from './runner-context.ts'
import { toStorableText } from './storable-text.ts'

type TestContext = Pick<RunnerContext, 'db' | 'changeNotices' | 'logger' | 'config'>

/** Tries the keys of organizations that are to be tried, now and every `intervalMs`; none without SECRETS_KEY. */
export function startModelKeyTests(
  ctx: TestContext,
  secrets: SecretBox | null,
  intervalMs: number,
): Pick<RepeatedTask, 'stop'> {
  if (!secrets) return { stop: () => Promise.resolve() }
  return repeat({
    name: 'try keys of models',
    intervalMs,
    logger: ctx.logger,
    async run(signal) {
      while (!signal.aborted) {
        const key = await claimModelKeyTest(ctx.db)
        if (!key) return
        await recordModelKeyTest(ctx.db, key.id, await tryKey(ctx, secrets, key, signal))
        ctx.changeNotices.add(key.organizationId, 'organization')
      }
    },
  })
}

/** Asks the model for a word. Resolves to why the key cannot be used, or null. */
async function tryKey(
  { config, logger }: TestContext,
  secrets: SecretBox,
  { id, organizationId, model, key }: ModelKey,
  signal: AbortSignal,
): Promise<string | null> {
  const known = config.agent.models.get(model)
  if (!known) return 'The service has no such model any more'
  const { createAskModel } = await import('./agent/model/ask-model.ts')
  try {
    const apiKey = secrets.decrypt({ organizationId, sourceId: id }, key)
    const question = {
      instructions: 'Answer with OK.',
      messages: [{ role: 'user' as const, content: 'OK?' }],
      tools: {},
    }
    await createAskModel({ ...known, apiKey, isOwnKey: true })(question, signal)
    return null
  } catch (error) {
    signal.throwIfAborted()
    const { name, message, code = name } = error as Error & { code?: string }
    logger.info({ organization_id: organizationId, model, code }, 'model_key.test_failed')
    return toStorableText(message).slice(0, 500)
  }
}

import {
  cancelQueuedRuns,
  cancelRun,
  findNoticeWebhook,
  newId,
  operatorOf,
  saveModelKey,
  saveNoticeWebhook,
} from '@workflow-service/database'
import { ApiError, invalidFields, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import { toDeliveryResult } from '../deliveries/describe-outcome.ts'
import { NotSentError, sendSignedRequest } from '../deliveries/send-signed-request.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { inSlot } from '../in-slot.ts'
import { checkUrl } from '../outbound/check-url.ts'
import { assertSecretMayTravel, decryptStoredSecret, encryptGivenSecret } from '../stored-secrets.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

const NOTICE_DEADLINE_MS = 10_000

/** Handlers of the keys of models, the notices and the queued runs of an organization. */
export function organizationHandlers(ctx: DispatcherContext) {
  const { db, changeNotices } = ctx
  return {
    saveModelKey: async (request) => {
      const { organization_id: organizationId } = request.params
      const { model, key: given } = request.body
      const id = newId()
      const key = ctx.secrets.encrypt({ organizationId, id }, given)
      const saved = { id, organizationId, model, key, lastCharacters: given.slice(-4) }
      if (await saveModelKey(db, saved, readActor(organizationId, request) ?? operatorOf(organizationId))) {
        changeNotices.add(organizationId, 'organization')
        return { status: 204 }
      }
      const message = 'is no model that the organization may use'
      throw invalidFields([{ field: 'model', code: 'value_error', message }])
    },

    /** Saves where the notices are sent. No request is made: a test notice shows whether it works. */
    saveNoticeWebhook: async (request) => {
      const { organization_id: organizationId } = request.params
      const { url, signing_secret: secret, events } = request.body
      const check = checkUrl(url, ctx.config.allowedSubnets)
      if (!check.isAllowed) throw invalidFields([{ field: 'url', code: check.code, message: check.message }])
      const owner = { organizationId, id: organizationId }
      for (;;) {
        const stored = await findNoticeWebhook(db, organizationId)
        if (secret === undefined && stored?.signingSecret)
          assertSecretMayTravel({ secret: 'signing_secret', url: 'url' }, stored.url, url)
        const sealed = encryptGivenSecret(ctx.secrets, owner, secret, stored?.signingSecret)
        const webhook = { url, signingSecret: sealed, events }
        // Another save may have changed the secret since it was read.
        const by = readActor(organizationId, request)
        if (await saveNoticeWebhook(db, organizationId, webhook, stored, by)) return { status: 204 }
      }
    },

    /** Sends one notice, with the limits and checks of payloads. The caller records what became of it. */
    sendNotice: async ({ params, query, body, requestId, trace }) => {
      const { organization_id: organizationId } = params
      return await inSlot(ctx, `notices:${organizationId}`, async () => {
        const webhook = await findNoticeWebhook(db, organizationId)
        if (!webhook) throw notFound('Webhook of notices')
        const owner = { organizationId, id: organizationId }
        const { result, redact } = await sendSignedRequest(ctx, {
          url: webhook.url,
          body: JSON.stringify(body),
          signingSecret: decryptStoredSecret(ctx.secrets, owner, webhook.signingSecret, 'signing_secret'),
          delivery: { id: body.id, attempt: query.attempt ?? 1 },
          requestId,
          trace,
          spanAttributes: { 'workflow_service.organization.id': organizationId },
          deadlineMs: NOTICE_DEADLINE_MS,
        }).catch((error: unknown) => {
          if (error instanceof NotSentError) throw serviceUnavailable(`${error.message} Nothing was sent.`, error)
          throw error
        })
        const { outcome, reason } = toDeliveryResult(result, redact)
        return { status: 200, body: { error: outcome === 'accepted' ? null : (reason ?? outcome) } }
      })
    },

    /** The caller of the internal API sees every run. */
    cancelRun: async (request) => {
      const { organization_id: organizationId, run_id: runId } = request.params
      const by = readActor(organizationId, request, 'member') ?? operatorOf(organizationId)
      const outcome = await cancelRun(db, { organizationId, memberId: null }, runId, by)
      if (outcome.kind === 'not_found') throw notFound('Run')
      if (outcome.kind === 'ended') throw new ApiError('run_ended', 'This run has ended already.')
      changeNotices.add(organizationId, 'runs', 'sessions')
      return { status: 204 }
    },

    cancelQueuedRuns: async (request) => {
      const { organization_id: organizationId } = request.params
      const by = readActor(organizationId, request, 'member') ?? operatorOf(organizationId)
      const { cancelled, isMore } = await cancelQueuedRuns(db, { organizationId, memberId: null }, request.body, by)
      changeNotices.add(organizationId, 'runs', 'sessions')
      return { status: 200, body: { cancelled, is_more: isMore } }
    },
  } satisfies Partial<InternalHandlers>
}

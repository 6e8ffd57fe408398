import { findNoticeWebhook, saveNoticeWebhook } from '@workflow-service/database'
import { invalidFields, notFound, serviceUnavailable } from '@workflow-service/service-kit'
import { toDeliveryResult } from '../deliveries/describe-outcome.ts'
import { NotSentError, sendSignedRequest } from '../deliveries/send-signed-request.ts'
import type { DispatcherContext } from '../dispatcher-context.ts'
import { checkUrl } from '../outbound/check-url.ts'
import { assertSecretMayTravel, encryptGivenSecret } from '../sources/signing-secret.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

const NOTICE_DEADLINE_MS = 10_000

/** Saves where the notices of an organization are sent. No request is made: a test notice shows whether it works. */
export function saveNotices(ctx: DispatcherContext): InternalHandlers['saveNoticeWebhook'] {
  return async (request) => {
    const { organization_id: organizationId } = request.params
    const { url, signing_secret: secret, events } = request.body
    const check = checkUrl(url, ctx.config.allowedSubnets)
    if (!check.isAllowed) throw invalidFields([{ field: 'url', code: check.code, message: check.message }])
    const stored = secret === undefined ? await findNoticeWebhook(ctx.db, organizationId) : undefined
    if (stored?.signingSecret) assertSecretMayTravel({ secret: 'signing_secret', url: 'url' }, stored.url, url)
    const sealed = encryptGivenSecret(ctx.secrets, { organizationId, id: organizationId }, secret)
    const webhook = { url, signingSecret: sealed, events }
    await saveNoticeWebhook(ctx.db, organizationId, webhook, readActor(organizationId, request))
    return { status: 204 }
  }
}

/** Sends one notice, with the limits and checks of payloads. The caller records what became of it. */
export function sendNotice(ctx: DispatcherContext): InternalHandlers['sendNotice'] {
  return async ({ params, query, body, requestId, trace }) => {
    const { organization_id: organizationId } = params
    const webhook = await findNoticeWebhook(ctx.db, organizationId)
    if (!webhook) throw notFound('Webhook of notices')
    const slot = await ctx.limiter.acquire(`notices:${organizationId}`, ctx.slotWaitMs)
    if (typeof slot === 'string') throw serviceUnavailable('Too many requests to endpoints are in flight. Try again.')
    try {
      const owner = { organizationId, id: organizationId }
      const { result, redact } = await sendSignedRequest(ctx, {
        url: webhook.url,
        body: JSON.stringify(body),
        signingSecret: webhook.signingSecret && ctx.secrets.decrypt(owner, webhook.signingSecret),
        delivery: { id: body.id, attempt: query.attempt ?? 1 },
        requestId,
        trace,
        spanAttributes: { 'workflow_service.organization.id': organizationId },
        deadlineMs: NOTICE_DEADLINE_MS,
      })
      const { outcome, reason } = toDeliveryResult(result, redact)
      return { status: 200, body: { error: outcome === 'accepted' ? null : (reason ?? outcome) } }
    } catch (error) {
      if (error instanceof NotSentError) throw serviceUnavailable(`${error.message} Nothing was sent.`, error)
      throw error
    } finally {
      slot()
    }
  }
}

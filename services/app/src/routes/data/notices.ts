import {
  deleteNoticeWebhook,
  findNoticeWebhook,
  listNotices,
  readNoticeKinds,
  recordTestNotice,
  saveNoticeKinds,
} from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import { rateLimited } from '@workflow-service/service-kit/rate-limit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { type Principal, toInternal } from '../../auth/principal.ts'
import { countEndpointRequest } from '../../endpoint-quota.ts'
import { sendNotice } from '../../notices.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Handlers of notices: where an organization gets them, and of what a person gets them. */
export function noticeHandlers(ctx: AppServiceContext) {
  const { db, config, dispatcher } = ctx
  const read = async (organizationId: string) => {
    const webhook = await findNoticeWebhook(db, organizationId)
    const shown = webhook
      ? { url: webhook.url, has_signing_secret: webhook.signingSecret !== null, events: webhook.events }
      : null
    return { webhook: shown, data: await listNotices(db, organizationId) }
  }
  const readMine = async ({ organizationId, userId }: Principal) => ({
    kinds: await readNoticeKinds(db, organizationId, userId),
    has_mail: config.smtp !== undefined,
  })
  const test = async (organizationId: string, userId: string | null) => {
    const notice = orNotFound(await recordTestNotice(db, organizationId, userId), 'Webhook of notices')
    return { error: await sendNotice(ctx, notice) }
  }
  return {
    getNotices: ({ principal }) => read(principal.organizationId),
    saveNoticeWebhook: async ({ principal, body, requestId }) => {
      await dispatcher.call('saveNoticeWebhook', { ...toInternal(principal, {}), body, requestId })
      return await read(principal.organizationId)
    },
    deleteNoticeWebhook: (request) => deleteNoticeWebhook(db, request),
    testNoticeWebhook: async ({ principal: { organizationId } }) => {
      await countEndpointRequest(ctx, organizationId)
      return await test(organizationId, null)
    },
    getMyNotices: ({ principal }) => readMine(principal),
    saveMyNotices: async (request) => {
      const { principal, body } = request
      await saveNoticeKinds(db, [...new Set(body.kinds)], request)
      return await readMine(principal)
    },
    testMyNotices: async ({ principal: { organizationId, userId } }) => {
      const counted = await ctx.mailLimiter.consume(`mail-tests:${organizationId}`)
      if (!counted.isAllowed) throw rateLimited('The people of the organization have sent too many tests.', counted)
      return await test(organizationId, userId)
    },
  } satisfies Partial<AppHandlers>
}

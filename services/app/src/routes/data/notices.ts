import {
  deleteNoticeWebhook,
  findNoticeWebhook,
  listNotices,
  readNoticeKinds,
  recordTestNotice,
  saveNoticeKinds,
} from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { type Principal, toInternal } from '../../auth/principal.ts'
import { sendNotice } from '../../notices.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Handlers of notices: where an organization gets them, and of what a person gets them. */
export function noticeHandlers(ctx: AppServiceContext) {
  const { db, config } = ctx
  const read = async (organizationId: string) => {
    const webhook = await findNoticeWebhook(db, organizationId)
    const shown = webhook
      ? { url: webhook.url, has_signing_secret: webhook.signingSecret !== null, events: webhook.events }
      : null
    return { body: { webhook: shown, data: await listNotices(db, organizationId) } }
  }
  const readMine = async ({ organizationId, userId }: Principal) => ({
    body: { kinds: await readNoticeKinds(db, organizationId, userId), has_mail: config.smtp !== undefined },
  })
  const test = async (organizationId: string, userId: string | null) => {
    const notice = await recordTestNotice(db, organizationId, userId)
    if (!notice) throw notFound('Webhook of notices')
    return { body: { error: await sendNotice(ctx, notice) } }
  }
  return {
    getNotices: ({ principal }) => read(principal.organizationId),
    saveNoticeWebhook: async ({ principal, body, requestId }) => {
      await ctx.dispatcher.call('saveNoticeWebhook', { ...toInternal(principal, {}), body, requestId })
      return await read(principal.organizationId)
    },
    deleteNoticeWebhook: async (request) => {
      await deleteNoticeWebhook(db, request.principal.organizationId, request)
      return { status: 204 }
    },
    testNoticeWebhook: ({ principal }) => test(principal.organizationId, null),
    getMyNotices: ({ principal }) => readMine(principal),
    saveMyNotices: async ({ principal, body }) => {
      await saveNoticeKinds(db, principal.organizationId, principal.userId, [...new Set(body.kinds)])
      return await readMine(principal)
    },
    testMyNotices: ({ principal }) => test(principal.organizationId, principal.userId),
  } satisfies Partial<AppHandlers>
}

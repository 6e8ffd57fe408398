import { type FieldError, findInexactNumberErrors, USAGE_MAX_DAYS } from '@workflow-service/contract'
import { markAttentionDone, readOverview, readUsage, searchEverything } from '@workflow-service/database'
import { ApiError, toDate } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'
import { deliveryHandlers, resendJobHandlers } from './deliveries.ts'
import { checkExpiry, keyHandlers } from './keys.ts'
import { noticeHandlers } from './notices.ts'
import { runHandlers } from './runs.ts'
import { lookupHandlers, webhookSourceHandlers } from './webhook-sources.ts'

/** A person with more open pages than this sees no live updates in the others. */
const MAX_STREAMS_PER_PERSON = 12

/** Handlers for webhook sources, deliveries, runs, sessions, API keys, usage and events. */
export function dataHandlers(ctx: AppServiceContext) {
  const { db, changeNotices, eventStreams } = ctx
  return {
    ...webhookSourceHandlers(ctx),
    ...lookupHandlers(ctx),
    ...deliveryHandlers(ctx),
    ...resendJobHandlers(ctx),
    ...runHandlers(ctx),
    ...keyHandlers(ctx),
    ...noticeHandlers(ctx),
    getOverview: ({ principal }) => readOverview(db, principal),
    markAttentionDone: async (request) => {
      const { principal, body } = request
      const { done, isMore } = await markAttentionDone(db, principal, body, request)
      changeNotices.add(principal.organizationId, 'deliveries', 'runs')
      return { done, is_more: isMore }
    },
    search: async ({ principal, query }) => ({ data: [...(await searchEverything(db, principal, query.q))] }),
    getUsage: ({ principal, query: { since, until, by = 'workflow', thing_id: thingId } }) =>
      readUsage(db, principal, { since: toDate(since), until: toDate(until), by, thingId }),
    streamEvents: ({ principal }) => {
      if (eventStreams.countOf(principal) >= MAX_STREAMS_PER_PERSON) {
        const headers = { 'Retry-After': '30' }
        throw new ApiError('rate_limited', 'Too many pages are open. Close some of them.', { headers })
      }
      return { stream: (_req, res) => eventStreams.open(res, principal) }
    },
  } satisfies Partial<AppHandlers>
}

/** A longer period would be read in part only. */
function checkUsagePeriod({ since, until }: { since?: string; until?: string }): FieldError[] {
  const end = Math.min(toDate(until)?.getTime() ?? Infinity, Date.now())
  if (end - (toDate(since)?.getTime() ?? end) <= USAGE_MAX_DAYS * 86_400_000) return []
  const message = `must be at most ${USAGE_MAX_DAYS} days before the end; read a longer time in several periods`
  return [{ field: 'since', code: 'value_error', message }]
}

/** Refuses numbers that would be sent as others. They occur in this field only. */
const refuseInexactNumbers = (field: string) => ({
  body: (_body: unknown, { bodyText }: { bodyText: string }) => findInexactNumberErrors(bodyText, field),
})

export const dataRules = {
  createApiKey: { body: checkExpiry },
  getUsage: { query: checkUsagePeriod },
  saveWebhookSource: refuseInexactNumbers('example_request_body'),
  approveDelivery: refuseInexactNumbers('payload'),
} satisfies AppRules

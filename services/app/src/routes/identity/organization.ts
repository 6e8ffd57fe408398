import {
  deleteOrganization,
  listAuditEvents,
  describeInstructions,
  readOrganization,
  saveInstructions,
  saveOrganization,
  wakeSpentSessions,
} from '@workflow-service/database'
import { invalidFields, orNotFound, toDate } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { SIGN_IN_COOKIE, setCookie } from '../../auth/cookie.ts'
import { assertConfirmed } from '../../auth/principal.ts'
import { type AppHandlers, changedMeanwhile, ResponseWithHeaders } from '../app-handlers.ts'
import { BY_ID, pageOfIds, pageOfRows } from '../paging.ts'

/** Handlers of the organization and its audit log. */
export function organizationHandlers(ctx: AppServiceContext) {
  const read = async (organizationId: string) =>
    orNotFound(await readOrganization(ctx.db, organizationId), 'Organization')
  return {
    getInstructions: ({ principal }) => describeInstructions(ctx.db, principal.organizationId),
    saveInstructions: async (request) => {
      const { organizationId } = request.principal
      const result = await saveInstructions(ctx.db, request.body, request)
      const instructions = await describeInstructions(ctx.db, organizationId)
      if (result === 'changed_meanwhile') throw changedMeanwhile(instructions)
      ctx.changeNotices.add(organizationId, 'organization')
      return instructions
    },
    getOrganization: ({ principal }) => read(principal.organizationId),
    saveOrganization: async (request) => {
      const { organizationId } = request.principal
      const result = await saveOrganization(ctx.db, request.body, request)
      const organization = await read(organizationId)
      if (result === 'changed_meanwhile') throw changedMeanwhile(organization)
      await wakeSpentSessions(ctx.db, organizationId)
      ctx.changeNotices.add(organizationId, 'organization')
      return organization
    },
    deleteOrganization: async (request) => {
      const { principal, body } = request
      const { name } = await read(principal.organizationId)
      if (body.name !== name) {
        throw invalidFields([{ field: 'name', code: 'value_error', message: 'is not the name of the organization' }])
      }
      assertConfirmed(principal)
      await deleteOrganization(ctx.db, request)
      return new ResponseWithHeaders({ 'Set-Cookie': setCookie(SIGN_IN_COOKIE, '', 0) })
    },
    listAuditEvents: async ({ principal, query }) => {
      const { action, actor_id: actorId, target_id: targetId } = query
      const filter = { action, actorId, targetId, since: toDate(query.since), until: toDate(query.until) }
      const list = ({ limit, after: before }: { limit: number; after: string | undefined }) =>
        listAuditEvents(ctx.db, principal.organizationId, { ...filter, limit, before })
      const named = (ids: readonly string[]) =>
        listAuditEvents(ctx.db, principal.organizationId, { ids, limit: ids.length })
      return (await pageOfIds(query, named)) ?? (await pageOfRows(query, BY_ID, ({ id }) => id, list))
    },
  } satisfies Partial<AppHandlers>
}

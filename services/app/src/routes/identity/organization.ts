import type { AppOrganizationOut, AuditEventOut } from '@workflow-service/contract'
import {
  type AuditEventRow,
  deleteOrganization,
  listAuditEvents,
  type OrganizationRow,
  readOrganization,
  renameOrganization,
} from '@workflow-service/database'
import { found, invalidFields } from '@workflow-service/service-kit'
import type { Static } from 'typebox'
import type { AppContext } from '../../app-context.ts'
import { SESSION_COOKIE, setCookie } from '../../auth/cookie.ts'
import { assertConfirmed } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_ID, readPage, toDate } from '../paging.ts'
import { changedMeanwhile } from './users.ts'

/** Handlers of the organization and its audit log. */
export function organizationHandlers(ctx: AppContext) {
  const read = async (organizationId: string): Promise<Static<typeof AppOrganizationOut>> => {
    return toOrganizationOut(found(await readOrganization(ctx.db, organizationId), 'Organization'))
  }
  return {
    getOrganization: async ({ principal }) => ({ body: await read(principal.organizationId) }),
    saveOrganization: async (request) => {
      const { organizationId } = request.principal
      const result = await renameOrganization(ctx.db, request.body, request)
      const organization = await read(organizationId)
      if (result === 'changed_meanwhile') throw changedMeanwhile(organization)
      ctx.hints.add(organizationId, 'organization')
      return { body: organization }
    },
    deleteOrganization: async (request) => {
      const { principal, body } = request
      const { name } = await read(principal.organizationId)
      if (body.name !== name) {
        throw invalidFields([{ field: 'name', code: 'value_error', message: 'is not the name of the organization' }])
      }
      assertConfirmed(principal)
      await deleteOrganization(ctx.db, request)
      return { status: 204, headers: setCookie(SESSION_COOKIE, '', 0) }
    },
    listAuditEvents: async ({ principal, query }) => {
      const { action, actor_id: actorId, target_id: targetId } = query
      const filter = { action, actorId, targetId, since: toDate(query.since), until: toDate(query.until) }
      const list = async (limit: number, before: string | undefined) =>
        (await listAuditEvents(ctx.db, principal.organizationId, { ...filter, limit, before })).map(toAuditEventOut)
      return { body: await readPage(query, BY_ID, list, ({ id }) => id) }
    },
  } satisfies Partial<AppHandlers>
}

function toOrganizationOut({ id, name, isSuspended, createdAt, version }: OrganizationRow) {
  return { id, name, is_suspended: isSuspended, created_at: createdAt.toISOString(), version }
}

function toAuditEventOut(event: AuditEventRow): Static<typeof AuditEventOut> {
  const { targetKind, targetId, targetName } = event
  return {
    id: event.id,
    at: event.at.toISOString(),
    actor: { kind: event.actorKind, id: event.actorId, name: event.actorName },
    action: event.action,
    target: targetKind === null ? null : { kind: targetKind, id: targetId, name: targetName ?? '' },
    changes: [...event.changes],
    request_id: event.requestId,
    address: event.address,
  }
}

import type { AppOrganizationOut, AuditEventOut } from '@workflow-service/contract'
import {
  type AuditEventRow,
  deleteOrganization,
  listAuditEvents,
  type OrganizationRow,
  readOrganization,
  renameOrganization,
} from '@workflow-service/database'
import { invalidFields, notFound } from '@workflow-service/service-kit'
import type { Static } from 'typebox'
import type { AppContext } from '../../app-context.ts'
import { SESSION_COOKIE, setCookie } from '../../auth/cookie.ts'
import { assertConfirmed } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { readPage } from '../pages.ts'
import { changedMeanwhile } from './users.ts'

const UUID = /^[0-9a-f-]{36}$/

/** Handlers of the organization and its audit log. */
export function organizationHandlers(ctx: AppContext) {
  const read = async (organizationId: string): Promise<Static<typeof AppOrganizationOut>> => {
    const organization = await readOrganization(ctx.db, organizationId)
    if (!organization) throw notFound('Organization')
    return toOrganizationOut(organization)
  }
  return {
    getOrganization: async ({ principal }) => ({ status: 200, body: await read(principal.organizationId) }),
    saveOrganization: async (request) => {
      const { organizationId } = request.principal
      const result = await renameOrganization(ctx.db, request.body, request)
      const organization = await read(organizationId)
      if (result === 'changed_meanwhile') throw changedMeanwhile(organization)
      ctx.hints.add(organizationId, 'organization')
      return { status: 200, body: organization }
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
    listAuditEvents: async ({ principal, query }) => ({
      status: 200,
      body: await readPage(query, {
        read: (limit, before) =>
          listAuditEvents(ctx.db, principal.organizationId, {
            limit,
            before: before?.[0],
            actorId: query.actor_id,
            targetId: query.target_id,
            action: query.action,
            since: toDate(query.since),
            until: toDate(query.until),
          }),
        keyOf: ({ id }) => [id],
        isKey: ([id = '', ...others]) => others.length === 0 && UUID.test(id),
        toItem: toAuditEventOut,
      }),
    }),
  } satisfies Partial<AppHandlers>
}

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
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

import type { ApiKeyOut, FieldError } from '@workflow-service/contract'
import {
  type AuditAction,
  ApiKeyExistsError,
  createApiKeyOf,
  findApiKey,
  inTransaction,
  listApiKeyPage,
  recordAuditEvent,
  revokeApiKeyOf,
  type TimePosition,
} from '@workflow-service/database'
import { ApiError, found } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { BY_TIME, readPage, timeOf } from '../paging.ts'

/** Handlers of the API keys. */
export function apiKeyHandlers(ctx: AppContext) {
  const { db } = ctx
  return {
    listApiKeys: async ({ principal, query }) => {
      const read = (limit: number, after: TimePosition | undefined) =>
        listApiKeyPage(db, principal.organizationId, { limit, after })
      return { body: await readPage(query, BY_TIME, read, timeOf) }
    },
    createApiKey: async ({ principal, body, requestId }) => {
      const { organizationId, userId } = principal
      const { id, name, scopes } = body
      const expiresAt = body.expires_at === null ? null : new Date(body.expires_at)
      const created = await inTransaction(db, async (client) => {
        const values = { id, name, scopes: [...new Set(scopes)], expiresAt, createdBy: userId }
        const key = await createApiKeyOf(client, organizationId, values)
        const apiKey = await findApiKey(client, organizationId, id)
        // A key of another organization, or another key of this one.
        if (!apiKey || (key === undefined && apiKey.name !== name)) {
          throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
        }
        if (key !== undefined) {
          const changes = [
            { field: 'scopes', old: null, new: apiKey.scopes },
            { field: 'expires_at', old: null, new: apiKey.expires_at },
          ]
          await recordAuditEvent(client, { ...toEvent('api_key.created', principal, apiKey, requestId), changes })
        }
        return { ...apiKey, key: key ?? null }
      }).catch((error: unknown) => {
        if (!(error instanceof ApiKeyExistsError)) throw error
        throw new ApiError('name_taken', 'Another key of the organization has this name. Choose another.')
      })
      ctx.hints.add(organizationId, 'api_keys')
      return { body: created }
    },
    revokeApiKey: async ({ principal, params: { api_key_id: id }, requestId }) => {
      await inTransaction(db, async (client) => {
        const apiKey = found(await findApiKey(client, principal.organizationId, id), 'API key')
        if (!(await revokeApiKeyOf(client, principal.organizationId, id))) return
        await recordAuditEvent(client, toEvent('api_key.revoked', principal, apiKey, requestId))
      })
      ctx.hints.add(principal.organizationId, 'api_keys')
      return { status: 204 }
    },
  } satisfies Partial<AppHandlers>
}

function toEvent(action: AuditAction, principal: Principal, { id, name }: ApiKeyOut, requestId: string) {
  return { action, principal, target: { kind: 'api_key', id, name }, requestId }
}

/** Checks that a new key is not expired already. */
export function checkExpiry({ expires_at: expiresAt }: { readonly expires_at?: string | null }): FieldError[] {
  if (!expiresAt || new Date(expiresAt).getTime() > Date.now()) return []
  return [{ field: 'expires_at', code: 'value_error', message: 'must be in the future' }]
}

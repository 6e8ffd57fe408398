import { isDeepStrictEqual } from 'node:util'
import type { ApiKeyOut, FieldError } from '@workflow-service/contract'
import {
  ApiKeyExistsError,
  deleteModelKey,
  findApiKey,
  listApiKeys,
  listModelKeys,
  type NewApiKey,
  revokeApiKey,
  storeApiKey,
} from '@workflow-service/database'
import { ApiError, byTime, notFound, toDate } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { toInternal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { pageOfRows, timeOf } from '../paging.ts'

const API_KEYS = byTime('api_keys')

/**
 * Handlers of API keys, and of an organization's own keys of models: the dispatcher encrypts those, and the runners use
 * them.
 */
export function keyHandlers({ db, dispatcher, changeNotices }: AppServiceContext) {
  const readModelKeys = async (organizationId: string) => ({ data: await listModelKeys(db, organizationId) })
  return {
    listApiKeys: ({ principal, query }) =>
      pageOfRows(query, API_KEYS, timeOf, (page) => listApiKeys(db, principal.organizationId, page)),
    createApiKey: async (request) => {
      const { organizationId } = request.principal
      const { id, name, scopes, expires_at: expiresAt } = request.body
      const values = { id, name, scopes, expiresAt: toDate(expiresAt ?? undefined) ?? null }
      const key = await storeApiKey(db, values, request).catch((error: unknown) => {
        if (!(error instanceof ApiKeyExistsError)) throw error
        throw new ApiError('name_taken', 'Another key of the organization has this name. Choose another.')
      })
      const apiKey = await findApiKey(db, organizationId, id)
      // A key of another organization, or another key of this one.
      if (!apiKey || (key === undefined && !isSameKey(apiKey, values))) {
        throw new ApiError('id_taken', 'This id cannot be used. Choose a new one.')
      }
      changeNotices.add(organizationId, 'api_keys')
      return { ...apiKey, key: key ?? null }
    },
    revokeApiKey: async (request) => {
      const { organizationId } = request.principal
      const revoked = await revokeApiKey(db, { id: request.params.api_key_id }, request)
      if (!revoked) throw notFound('API key')
      changeNotices.add(organizationId, 'api_keys')
    },
    listModelKeys: ({ principal }) => readModelKeys(principal.organizationId),
    saveModelKey: async ({ principal, body, requestId }) => {
      await dispatcher.call('saveModelKey', { ...toInternal(principal, {}), body, requestId })
      return await readModelKeys(principal.organizationId)
    },
    deleteModelKey: async (request) => {
      if (!(await deleteModelKey(db, request.params.model_key_id, request))) throw notFound('Key')
      changeNotices.add(request.principal.organizationId, 'organization')
    },
  } satisfies Partial<AppHandlers>
}

/** Whether a creation that is repeated has made the key. */
function isSameKey(stored: ApiKeyOut, { name, scopes, expiresAt }: NewApiKey): boolean {
  const expiry = stored.expires_at && toDate(stored.expires_at)
  return isDeepStrictEqual([stored.name, stored.scopes, expiry], [name, scopes, expiresAt])
}

/** Checks that a new key is not expired already. */
export function checkExpiry({ expires_at: expiresAt }: { readonly expires_at?: string | null }): FieldError[] {
  if (!expiresAt || new Date(expiresAt).getTime() > Date.now()) return []
  return [{ field: 'expires_at', code: 'value_error', message: 'must be in the future' }]
}

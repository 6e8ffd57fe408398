import { deleteLookup, listLookups } from '@workflow-service/database'
import { ApiError, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { toInternal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { changedMeanwhile } from '../changed-meanwhile.ts'
import { toInternalVersion } from './webhook-sources.ts'

/** Handlers of the look-ups. The dispatcher saves and calls them: it has the key of their secrets. */
export function lookupHandlers({ db, dispatcher, changeNotices }: AppServiceContext) {
  const read = async (organizationId: string, id?: string) =>
    (await listLookups(db, organizationId, id)).map((lookup) => ({ ...lookup, version: String(lookup.version) }))
  return {
    listLookups: async ({ principal }) => ({ data: await read(principal.organizationId) }),
    getLookup: async ({ principal, params }) =>
      orNotFound((await read(principal.organizationId, params.lookup_id))[0], 'Look-up'),
    saveLookup: async ({ principal, params, body: { version, ...values }, requestId }) => {
      const query = { version: toInternalVersion(version) }
      const call = { ...toInternal(principal, params), query, body: values, requestId }
      const saved = await dispatcher.call('saveLookup', call).catch(async (error: unknown) => {
        if (!(error instanceof ApiError) || error.code !== 'source_changed') throw error
        throw changedMeanwhile((await read(principal.organizationId, params.lookup_id))[0], error)
      })
      return { ...saved, version: String(saved.version) }
    },
    deleteLookup: async (request) => {
      if (!(await deleteLookup(db, request.params.lookup_id, request))) throw notFound('Look-up')
      changeNotices.add(request.principal.organizationId, 'lookups')
    },
    testLookup: ({ principal, params, body, requestId }) =>
      dispatcher.call('callLookup', { ...toInternal(principal, params), body, requestId }),
  } satisfies Partial<AppHandlers>
}

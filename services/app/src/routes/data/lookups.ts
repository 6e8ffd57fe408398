import type { AppLookupOut } from '@workflow-service/contract'
import { deleteLookup, listLookups, type Lookup, toLookupOut } from '@workflow-service/database'
import { ApiError, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { type Principal, toInternal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { changedMeanwhile } from '../changed-meanwhile.ts'
import { toInternalVersion } from './webhook-sources.ts'

const toAppLookupOut = (lookup: Lookup): AppLookupOut => ({ ...toLookupOut(lookup), version: String(lookup.version) })

/** Handlers of the look-ups. The dispatcher saves and calls them: it has the key of their secrets. */
export function lookupHandlers(ctx: AppServiceContext) {
  const read = async ({ organizationId }: Principal, lookupId: string): Promise<AppLookupOut | undefined> =>
    (await listLookups(ctx.db, organizationId, lookupId)).map(toAppLookupOut)[0]
  return {
    listLookups: async ({ principal }) => ({
      body: { data: (await listLookups(ctx.db, principal.organizationId)).map(toAppLookupOut) },
    }),
    getLookup: async ({ principal, params }) => ({
      body: orNotFound(await read(principal, params.lookup_id), 'Look-up'),
    }),
    saveLookup: async ({ principal, params, body, requestId }) => {
      const { version, ...values } = body
      const query = { version: toInternalVersion(version) }
      const call = { ...toInternal(principal, params), query, body: values, requestId }
      const saved = await ctx.dispatcher.call('saveLookup', call).catch(async (error: unknown) => {
        if (!(error instanceof ApiError) || error.code !== 'source_changed') throw error
        throw changedMeanwhile(await read(principal, params.lookup_id), error)
      })
      return { body: { ...saved, version: String(saved.version) } }
    },
    deleteLookup: async (request) => {
      const { principal, params } = request
      if (!(await deleteLookup(ctx.db, params.lookup_id, request))) throw notFound('Look-up')
      ctx.changeNotices.add(principal.organizationId, 'lookups')
      return { status: 204 }
    },
    testLookup: async ({ principal, params, body, requestId }) => ({
      body: await ctx.dispatcher.call('callLookup', { ...toInternal(principal, params), body, requestId }),
    }),
  } satisfies Partial<AppHandlers>
}

import { deleteModelKey, listModelKeys, requestModelKeyTest } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { toInternal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Handlers of an organization's own keys of models. The dispatcher encrypts them, and the runners try and use them. */
export function modelKeyHandlers(ctx: AppServiceContext) {
  const list = async (organizationId: string) => ({ body: { data: await listModelKeys(ctx.db, organizationId) } })
  return {
    listModelKeys: ({ principal }) => list(principal.organizationId),
    saveModelKey: async ({ principal, body, requestId }) => {
      await ctx.dispatcher.call('saveModelKey', { ...toInternal(principal, {}), body, requestId })
      return await list(principal.organizationId)
    },
    deleteModelKey: async (request) => {
      const { organizationId } = request.principal
      if (!(await deleteModelKey(ctx.db, request.params.model_key_id, request))) throw notFound('Key')
      ctx.changeNotices.add(organizationId, 'organization')
      return { status: 204 }
    },
    testModelKey: async (request) => {
      const { organizationId } = request.principal
      if (!(await requestModelKeyTest(ctx.db, request.params.model_key_id, request))) throw notFound('Key')
      return await list(organizationId)
    },
  } satisfies Partial<AppHandlers>
}

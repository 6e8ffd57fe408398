import { deleteModelKey, listModelKeys, requestModelKeyTest } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { actorHeaders } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Handlers of an organization's own keys of models. The dispatcher encrypts them, and the runners try and use them. */
export function modelKeyHandlers(ctx: AppServiceContext) {
  const list = async (organizationId: string) => ({ body: { data: await listModelKeys(ctx.db, organizationId) } })
  return {
    listModelKeys: ({ principal }) => list(principal.organizationId),
    saveModelKey: async ({ principal, body, requestId }) => {
      const { organizationId } = principal
      const params = { organization_id: organizationId }
      await ctx.dispatcher.call('saveModelKey', { params, body, headers: actorHeaders(principal), requestId })
      return await list(organizationId)
    },
    deleteModelKey: async (request) => {
      const { organizationId } = request.principal
      if (!(await deleteModelKey(ctx.db, organizationId, request.params.model_key_id, request))) throw notFound('Key')
      ctx.changeNotices.add(organizationId, 'organization')
      return { status: 204 }
    },
    testModelKey: async (request) => {
      const { organizationId } = request.principal
      const { model_key_id: id } = request.params
      if (!(await requestModelKeyTest(ctx.db, organizationId, id, request))) throw notFound('Key')
      return await list(organizationId)
    },
  } satisfies Partial<AppHandlers>
}

import { deleteModelKey, listModelKeys } from '@workflow-service/database'
import { notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { toInternal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Handlers of an organization's own keys of models. The dispatcher encrypts them, and the runners use them. */
export function modelKeyHandlers({ db, dispatcher, changeNotices }: AppServiceContext) {
  const list = async (organizationId: string) => ({ data: await listModelKeys(db, organizationId) })
  return {
    listModelKeys: ({ principal }) => list(principal.organizationId),
    saveModelKey: async ({ principal, body, requestId }) => {
      await dispatcher.call('saveModelKey', { ...toInternal(principal, {}), body, requestId })
      return await list(principal.organizationId)
    },
    deleteModelKey: async (request) => {
      if (!(await deleteModelKey(db, request.params.model_key_id, request))) throw notFound('Key')
      changeNotices.add(request.principal.organizationId, 'organization')
    },
  } satisfies Partial<AppHandlers>
}

import type { ResendJobIn, ResendJobOut } from '@workflow-service/contract'
import {
  createResendJob,
  findResendJob,
  listResendJobs,
  previewResends,
  type ResendFilter,
  stopResendJob,
  type Viewer,
} from '@workflow-service/database'
import { ApiError, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { toDeliveryFilter } from './deliveries.ts'

/** Handlers of the jobs that send payloads again. */
export function resendJobHandlers({ db, changeNotices }: AppServiceContext) {
  const read = async (viewer: Viewer, id: string): Promise<ResendJobOut> =>
    orNotFound(await findResendJob(db, viewer, id), 'Job')
  return {
    previewResends: ({ principal, body }) => previewResends(db, principal, toFilter(body)),
    createResendJob: async (request) => {
      const { principal, body } = request
      const job = { filter: toFilter(body), perSecond: body.per_second, by: request }
      const id = await createResendJob(db, principal, job)
      if (id === undefined) {
        throw new ApiError('not_resendable', 'No payload matches that can be sent again. Nothing was sent.')
      }
      changeNotices.add(principal.organizationId, 'deliveries')
      return await read(principal, id)
    },
    listResendJobs: async ({ principal }) => ({ data: await listResendJobs(db, principal) }),
    getResendJob: ({ principal, params }) => read(principal, params.resend_job_id),
    stopResendJob: async (request) => {
      const { principal, params } = request
      await stopResendJob(db, principal, params.resend_job_id, request)
      changeNotices.add(principal.organizationId, 'deliveries')
      return await read(principal, params.resend_job_id)
    },
  } satisfies Partial<AppHandlers>
}

function toFilter(body: ResendJobIn): ResendFilter {
  return body.ids ? { ids: body.ids } : toDeliveryFilter(body)
}

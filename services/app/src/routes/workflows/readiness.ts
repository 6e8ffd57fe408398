import { READINESS_CODES } from '@workflow-service/contract'
import { readReadiness, viewerOf } from '@workflow-service/database'
import { found } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { checkStoredWorkflow, toWarnings } from './check-workflow.ts'

/** Reads whether a start would be accepted, and the webhook sources that the workflow names. */
export function getReadiness(ctx: Pick<AppContext, 'db'>): AppHandlers['getReadiness'] {
  return async ({ params, principal }) => {
    const { organizationId } = principal
    const workflow = found(await readReadiness(ctx.db, viewerOf(principal), params.workflow_id), 'Workflow')
    const result = await checkStoredWorkflow(ctx, organizationId, params.workflow_id)
    const checks = READINESS_CODES.map((code) => ({ code, is_met: !workflow.violations[code] }))
    return {
      body: {
        can_start: !workflow.isSuspended && checks.every((check) => check.is_met),
        checks,
        sources: result.sources.map(({ id, name, isVerified }) => ({
          id,
          name,
          is_verified: isVerified,
        })),
        unknown_names: [...result.unknownNames],
        warnings: toWarnings(result),
      },
    }
  }
}

import { findNamedSources, findUnknownNames, READINESS_CODES } from '@workflow-service/contract'
import { listSourceStates, readReadiness, viewerOf } from '@workflow-service/database'
import { found } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Reads whether a start would be accepted, and the webhook sources that the description names. */
export function getReadiness({ db }: Pick<AppContext, 'db'>): AppHandlers['getReadiness'] {
  return async ({ params, principal }) => {
    const { organizationId } = principal
    const workflow = found(await readReadiness(db, viewerOf(principal), params.workflow_id), 'Workflow')
    const sources = await listSourceStates(db, organizationId)
    const checks = READINESS_CODES.map((code) => ({ code, is_met: !workflow.violations[code] }))
    return {
      body: {
        can_start: !workflow.isSuspended && checks.every((check) => check.is_met),
        checks,
        sources: findNamedSources(workflow.description, sources).map(({ id, name, isVerified }) => ({
          id,
          name,
          is_verified: isVerified,
        })),
        unknown_names: findUnknownNames(workflow.description, sources),
      },
    }
  }
}

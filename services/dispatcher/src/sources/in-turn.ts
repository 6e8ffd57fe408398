import { serviceUnavailable } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'

/**
 * Does the database work of a save or test in one of the organization's two turns. Without them, many saves at once
 * would take all connections from payloads, each waiting for the organization's quota.
 * @throws ApiError 503 if there is no turn within 5 s.
 */
export function inTurn<Result>(
  { savingTurns }: Pick<DispatcherContext, 'savingTurns'>,
  organizationId: string,
  work: () => Promise<Result>,
): Promise<Result> {
  return savingTurns.run(organizationId, work, {
    refuse: () => serviceUnavailable('Too many webhook sources are being saved. Try again.'),
  })
}

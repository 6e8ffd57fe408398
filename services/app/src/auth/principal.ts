import { formatActor } from '@workflow-service/contract'
import type { AuditPrincipal, SignedInUser, Viewer } from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'

/** A caller: where the request comes from. */
export interface Visitor {
  readonly address: string
  readonly userAgent: string | null
  readonly cookies: string | undefined
}

/** The person who is signed in, as a user of the organization in which the person works, with what the person sees. */
export interface Principal extends SignedInUser, Visitor, Pick<Viewer, 'memberId'>, Pick<AuditPrincipal, 'allowedAs'> {}

/** Says who makes a change, for the audit event that the dispatcher records with it. */
export function actorHeaders({ userId, name, address }: Principal): { readonly 'X-Actor': string } {
  return { 'X-Actor': formatActor({ user_id: userId, name, address }) }
}

/** The parts of a call of the dispatcher that say who changes what of the organization. */
export function toInternal<Params extends object>(principal: Principal, params: Params) {
  return { params: { organization_id: principal.organizationId, ...params }, headers: actorHeaders(principal) }
}

/**
 * Refuses a sensitive change unless the person has confirmed with the password, or signed in, within the last 10
 * minutes.
 * @throws ApiError 403 `confirmation_required`
 */
export function assertConfirmed({ confirmedUntil }: Pick<Principal, 'confirmedUntil'>): void {
  if (confirmedUntil) return
  throw new ApiError('confirmation_required', 'Confirm with your password, or sign in with your provider again, first.')
}

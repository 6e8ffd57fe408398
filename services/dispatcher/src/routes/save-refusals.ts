import { type AuditedBy, QuotaExceededError, type QuotaKind, type SaveRefusal } from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'

/** Returns the error of a save that is refused. */
export function refusalOf(kind: SaveRefusal, saved: 'webhook source' | 'look-up'): ApiError {
  switch (kind) {
    case 'no_organization':
      return notFound('Organization')
    case 'id_taken':
      return new ApiError(
        kind,
        `There is no ${saved} with this id to change, or it is deleted or of another organization. Choose a new id.`,
      )
    case 'name_taken':
      return new ApiError(kind, `Another ${saved} of the organization has this name (ignoring case). Choose another.`)
    default:
      return kind satisfies never
  }
}

/** Adds a quota of the organization, which holds for people: operators and manifests may exceed it. */
export function withQuota(by: AuditedBy | undefined, kind: QuotaKind, max: number): AuditedBy | undefined {
  return by?.principal.userId ? { ...by, quotas: { ...by.quotas, [kind]: max } } : by
}

/** @throws ApiError 409 `quota_exceeded` with this message if the save exceeds its quota. */
export async function orRefused<Result>(saved: Promise<Result>, quotaMessage: string): Promise<Result> {
  try {
    return await saved
  } catch (error) {
    throw error instanceof QuotaExceededError ? new ApiError('quota_exceeded', quotaMessage) : error
  }
}

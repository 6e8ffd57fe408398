import { type AuditedBy, QuotaExceededError, type QuotaKind } from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'

/** 409 of a save whose id belongs to something else. */
export function idTaken(thing: string): ApiError {
  return new ApiError(
    'id_taken',
    `There is no ${thing} with this id to change, or it is deleted or of another organization. Choose a new id.`,
  )
}

/** 409 of a save whose name another one has. */
export function nameTaken(thing: string): ApiError {
  return new ApiError(
    'name_taken',
    `Another ${thing} of the organization has this name (ignoring case). Choose another.`,
  )
}

/** Adds a quota of the organization, which holds for people: operators and manifests may exceed it. */
export function withQuota(by: AuditedBy | undefined, kind: QuotaKind, max: number): AuditedBy | undefined {
  return by?.principal.userId ? { ...by, quotas: { [kind]: max } } : by
}

/** @throws ApiError 409 `quota_exceeded` with this message if the save exceeds its quota. */
export async function withinQuota<Result>(saved: Promise<Result>, message: string): Promise<Result> {
  try {
    return await saved
  } catch (error) {
    throw error instanceof QuotaExceededError ? new ApiError('quota_exceeded', message) : error
  }
}

import { ApiError } from '@workflow-service/service-kit'

/** Refuses a save whose version is not that of the stored values, which are `current`; none if they are deleted. */
export function changedMeanwhile(current: object | null | undefined, cause?: unknown): ApiError {
  return new ApiError('changed_meanwhile', 'This was changed since you opened it. Nothing was saved or sent.', {
    extra: { current: current ?? null },
    cause,
  })
}

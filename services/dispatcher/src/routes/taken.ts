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

import { jsonBodyReader } from '@workflow-service/service-kit'

/** A context of 10,000 characters, each written as two \\u escapes, takes 120,000 bytes. */
export const BODY_MAX_BYTES = 256 * 1024

/** Reads the body of a start. */
export const readJsonBody = jsonBodyReader({ maxBytes: BODY_MAX_BYTES })

import { EXAMPLE_MAX_BYTES } from '@workflow-service/contract'

/**
 * The example of the source, or null where its text is larger than any that is saved today: it is neither read nor parsed then. The
 * agents and the dispatcher refuse it (`findStoredExampleError`).
 */
export const BOUNDED_EXAMPLE = `CASE WHEN octet_length(example_request_body::text) <= ${EXAMPLE_MAX_BYTES} THEN example_request_body END`

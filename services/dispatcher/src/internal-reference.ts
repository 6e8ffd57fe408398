import {
  describeInternalApi,
  ERROR_CODES,
  ERROR_MEANINGS,
  FIELD_MEANINGS,
  INTERNAL_ERROR_CODES,
} from '@workflow-service/contract'
import { createSamples, describeRequest, type OpenApiDocument, type Reference } from '@workflow-service/reference'

/** Collects what the reference page of the internal API shows to developers of applications. */
export function createInternalReference(): Reference {
  const document = describeInternalApi() as unknown as OpenApiDocument
  return {
    document,
    documentPath: 'openapi.json',
    root: '..',
    usesPageAddress: true,
    guides: [],
    errors: INTERNAL_ERROR_CODES.map((code) => ({ code, status: ERROR_CODES[code], meaning: ERROR_MEANINGS[code] })),
    fieldCodes: FIELD_MEANINGS,
    samplesOf: (operation) => createSamples(describeRequest(document, operation), 'INTERNAL_API_TOKEN'),
    credential: { name: 'Token', placeholder: 'a token of INTERNAL_API_TOKEN' },
  }
}

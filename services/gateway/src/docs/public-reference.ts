import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  describePublicApi,
  ERROR_CODES,
  ERROR_MEANINGS,
  FIELD_MEANINGS,
  type FieldCode,
  type OperationId,
  PUBLIC_ERROR_CODES,
} from '@workflow-service/contract'
import type { Guide, OpenApiDocument, Reference } from '@workflow-service/reference'
import { createClientSample } from './client-samples.ts'
import { ERROR_ACTIONS } from './error-actions.ts'

/** The guides by id, in the order of the page; each is a file in `guides/`. */
const GUIDE_TITLES = {
  'first-start': 'First start',
  sessions: 'Sessions',
  idempotency: 'Idempotency and retries',
  receiving: 'Receiving',
  'rotating-a-secret': 'Rotating a secret',
  'going-live': 'Going live',
}

/** The field codes of the operations of the public API. */
const FIELD_CODES: readonly FieldCode[] = [
  'missing',
  'extra_forbidden',
  'model_attributes_type',
  'too_many_fields',
  'string_type',
  'string_too_short',
  'string_too_long',
  'string_unicode',
  'uuid_type',
  'uuid_parsing',
  'int_parsing',
  'greater_than_equal',
  'less_than_equal',
  'not_found',
  'invalid_cursor',
]

/** Collects what the reference page of the public API shows. */
export function createPublicReference(apiUrl: string | undefined): Reference {
  const document = describePublicApi(apiUrl) as unknown as OpenApiDocument
  const serverUrl = document.servers[0]?.url ?? ''
  const guides = Object.entries(GUIDE_TITLES).map(([id, title]): Guide => {
    const markdown = readFileSync(join(import.meta.dirname, 'guides', `${id}.md`), 'utf8')
    return { id, title, markdown: markdown.replaceAll('http://127.0.0.1:8080', serverUrl) }
  })
  return {
    document,
    usesPageAddress: apiUrl === undefined,
    guides,
    errors: PUBLIC_ERROR_CODES.map((code) => ({
      code,
      status: ERROR_CODES[code],
      meaning: ERROR_MEANINGS[code],
      action: ERROR_ACTIONS[code],
    })),
    fieldCodes: Object.fromEntries(FIELD_CODES.map((code) => [code, FIELD_MEANINGS[code]])),
    clientSampleOf: (id) => createClientSample(id as OperationId, serverUrl),
  }
}

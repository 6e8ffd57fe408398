/** Organizations with their API keys, quotas and audit log, and what a person of one may see. */
export * from './api-key-format.ts'
export * from './api-keys.ts'
export * from './audit-events.ts'
export * from './delete-runs.ts'
export * from './instructions.ts'
export * from './organizations.ts'
export * from './quotas.ts'
export * from './roles.ts'
export * from './search.ts'
export * from './search-chunks.ts'
export {
  ERROR_CODE,
  FAILED_AT,
  FAILED_RECENTLY,
  hasQueueOf,
  hasStatus,
  LONG_QUEUE,
  NEEDS_ATTENTION,
  VERY_LONG_QUEUE,
  startsOfStatus,
  unfinishedStarts,
} from './starts-by-status.ts'
export * from './visibility.ts'

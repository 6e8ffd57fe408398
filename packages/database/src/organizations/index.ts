/** Organizations with their API keys, quotas and audit log, and what a person of one may see. */
export * from './api-key-format.ts'
export * from './api-keys.ts'
export * from './audit-events.ts'
export * from './organizations.ts'
export * from './quotas.ts'
export * from './search.ts'
export { hasStatus } from './starts-by-status.ts'
export * from './visibility.ts'

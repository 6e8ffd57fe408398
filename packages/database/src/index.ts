/**
 * The only room that knows Prisma and SQL. It offers questions and commands named in the domain's words; each takes the
 * database first and the organization second, so there is no unscoped read to misuse. Hot paths are single named
 * statements through the pool, the rest is plain Prisma on the same pool.
 */
export { createApiKey, hashApiKey, parseApiKey, type ParsedApiKey } from './api-key-format.ts'
export { type AutoRunFrequency, nextAutoRunAt, scheduleAutoRun, type StoredSchedule } from './auto-run-schedule.ts'
export { createDatabase, type Database, type DatabaseOptions } from './client.ts'
export { foldCase } from './fold-case.ts'
export { newId } from './ids.ts'
export { migrate } from './migrate.ts'
export { workflowSearchText } from './search-text.ts'

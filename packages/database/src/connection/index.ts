/**
 * The pool, transactions, errors and migrations, and what every area needs: ids, positions in lists, change notices.
 */
export * from './advisory-lock.ts'
export * from './check-server.ts'
export * from './client.ts'
export * from './database-unavailable.ts'
export * from './fold-case.ts'
export * from './change-notices.ts'
export { deriveId, isDeliveryIdOfRun, newDeliveryId, newId, NIL_UUID } from './ids.ts'
export { inTransaction } from './in-transaction.ts'
export * from './migrate.ts'
export * as paging from './paging.ts'
export { inPrismaTransaction, type Transaction } from './prisma-transaction.ts'
export * from './rows.ts'
export * from './search-text.ts'
export * from './search-words.ts'
export * from './statement.ts'
export * from './versions.ts'

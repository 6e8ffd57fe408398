/**
 * Storage: all SQL of the service. Functions take the database first and the organization second.
 */
export {
  checkServer,
  createDatabase,
  createChangeNotifier,
  type Database,
  type DatabaseOptions,
  type Db,
  deriveId,
  doEach,
  foldCase,
  type ChangeNotice,
  type ChangeListener,
  inTransaction,
  isDatabaseUnavailable,
  isDeliveryIdOfRun,
  isStatementError,
  isStatementTimeout,
  listenToChanges,
  migrate,
  MigrationBlockedError,
  newDeliveryId,
  newId,
  NIL_UUID,
  readClock,
  type SqlDatabase,
  statements,
  workflowSearchText,
} from './connection/index.ts'
export type { AgedBatch } from './connection/rows.ts'
export type { ReadPage, TimePosition } from './connection/paging.ts'
export * from './organizations/index.ts'
export * from './people/index.ts'
export * from './workflows/index.ts'
export * from './sources/index.ts'
export * from './deliveries/index.ts'
export * from './runs/index.ts'
export * from './upkeep/index.ts'

/**
 * Starts PostgreSQL, RabbitMQ and Redis on this machine, without containers, for development and tests. A server ends
 * with the process that started it, also when that process is killed. Never part of the image.
 */
export { EmbeddedPostgresError } from './embedded-postgres-error.ts'
export { findChromium } from './find-chromium.ts'
export { findProgram, searchPath } from './find-program.ts'
export { freePort, listenError } from './free-port.ts'
export type { PrivateServer } from './private-server.ts'
export { isAlive } from './is-alive.ts'
export { findOrInstall } from './programs.ts'
export { callManagementApi } from './rabbitmq-management.ts'
export { makeRunFolder, removeDeadRunFolders } from './run-folder.ts'
export { type Exit, type GuardedProcess, spawnGuarded } from './spawn-guarded.ts'
export {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from './start-embedded-postgres.ts'
export { type PrivatePostgres, startPostgres } from './start-postgres.ts'
export { type PrivateRabbitMq, startRabbitMq } from './start-rabbitmq.ts'
export { startRedis } from './start-redis.ts'
export { waitUntil } from './wait-until.ts'

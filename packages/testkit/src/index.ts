/**
 * What tests need that is real: PostgreSQL and RabbitMQ, customer endpoints that misbehave on demand, a model server
 * that follows a script, services as child processes. It mocks nothing and skips nothing: where a server cannot be had,
 * the test fails and says how to get it.
 *
 * `createTestDatabase` and `createTestBroker` give a test file a database and a virtual host of its own on servers that
 * the Jest run starts when the first file asks (`jest/global-setup.ts`); `TEST_DATABASE_URL` and `AMQP_URL` name others
 * to use instead. `startPostgres`, `startRabbitMq` and `startRedis` start servers that a test may kill, pause and
 * restart. Whatever is started here ends with the process that started it, however that ends.
 */
export {
  freePort,
  type PrivatePostgres,
  type PrivateRabbitMq,
  type PrivateServer,
  startPostgres,
  startRabbitMq,
  startRedis,
  waitUntil,
  type WaitOptions,
} from '@workflow-service/dev-servers'
export { type CapturedLogger, createCapturedLogger } from './create-captured-logger.ts'
export {
  startCustomerEndpoint,
  type Answer,
  type Answering,
  type CustomerEndpoint,
  type CustomerEndpointOptions,
  type RecordedRequest,
} from './start-customer-endpoint.ts'
export { startRawEndpoint, type RawEndpoint, type RawEndpointOptions } from './start-raw-endpoint.ts'
export { createCertificate, type Certificate, type CertificateOptions } from './create-certificate.ts'
export { startProcess, type StartedProcess, type StartProcessOptions } from './start-process.ts'
export {
  startStubModelServer,
  type ModelAnswer,
  type ModelFailure,
  type ModelRequest,
  type ModelToolCall,
  type ModelTurn,
  type StubModelServer,
} from './start-stub-model-server.ts'
export { createTestBroker, type TestBroker } from './create-test-broker.ts'
export { createTestDatabase, type TestDatabase } from './create-test-database.ts'

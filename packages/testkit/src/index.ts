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
export { type CapturedLogger, createCapturedLogger } from './captured-logger.ts'
export {
  customerEndpoint,
  type Answer,
  type Answering,
  type CustomerEndpoint,
  type CustomerEndpointOptions,
  type RecordedRequest,
} from './customer-endpoint.ts'
export { rawEndpoint, type RawEndpoint, type RawEndpointOptions } from './raw-endpoint.ts'
export { selfSignedCertificate, type Certificate, type CertificateOptions } from './self-signed-certificate.ts'
export { startProcess, type StartedProcess, type StartProcessOptions } from './start-process.ts'
export {
  stubModelServer,
  type ModelAnswer,
  type ModelFault,
  type ModelRequest,
  type ModelToolCall,
  type ModelTurn,
  type StubModelServer,
} from './stub-model-server.ts'
export { createTestBroker, type TestBroker } from './test-broker.ts'
export { createTestDatabase, type TestDatabase } from './test-database.ts'

/**
 * Test doubles and servers: PostgreSQL and RabbitMQ for test files, customer endpoints that fail on demand, a model
 * with a script behind the APIs of five providers, services as child processes. Nothing is mocked and no test is
 * skipped: if a server cannot be started, the test fails and says how to get one.
 *
 * `createTestDatabase` and `createTestBroker` give a test file a database and a virtual host on servers that the Jest
 * run starts when the first file asks (`jest/global-setup.ts`); `AMQP_URL` names another RabbitMQ to use instead.
 * `startPostgres`, `startRabbitMq` and `startRedis` start servers that one test may kill, pause and restart. Every
 * server and process started here ends with the process that started it, also when that process is killed.
 */
export { beginTransaction } from './begin-transaction.ts'
export { hearNotices } from './hear-notices.ts'
export {
  freePort,
  type PrivatePostgres,
  type PrivateRabbitMq,
  type PrivateServer,
  startPostgres,
  startRabbitMq,
  startRedis,
  waitUntil,
} from '@workflow-service/dev-servers'
export { type CapturedLogger, createCapturedLogger } from './create-captured-logger.ts'
export {
  startCustomerEndpoint,
  type Answer,
  type AnswerSource,
  type CustomerEndpoint,
  type RecordedRequest,
} from './start-customer-endpoint.ts'
export { type McpAnswer, mcpHandler, modernMcpHandler } from './mcp-handler.ts'
export { close, listen } from './loopback-server.ts'
export { type Proxy, startProxy } from './start-proxy.ts'
export { startRawEndpoint, type RawEndpointOptions } from './start-raw-endpoint.ts'
export { createCertificate } from './create-certificate.ts'
export { openConnection, parseResponse, type RawResponse, sendRaw } from './raw-request.ts'
export { runProgram } from './run-program.ts'
export { startProcess, type StartedProcess } from './start-process.ts'
export { startStubModelServer, type StubModelServer } from './start-stub-model-server.ts'
export {
  type ModelAnswer,
  type ModelMessage,
  type ModelProtocolName,
  type ModelRequest,
  type ModelSpeech,
  type ModelTurn,
  toServerSentEvents,
} from './stub-model/turn.ts'
export { createSignedInUser, type SignedInTestUser } from './create-signed-in-user.ts'
export { createTestBroker, type TestBroker } from './create-test-broker.ts'
export { cloneDatabase, createTestDatabase, type TestDatabase } from './create-test-database.ts'
export { triggerBody } from './trigger-body.ts'
export { failForOrganization } from './fail-for-organization.ts'
export { countLocked, untilLocked } from './until-locked.ts'
export { type ReceivedSpan, SPAN_KINDS, startOtlpReceiver } from './start-otlp-receiver.ts'

import { homedir, tmpdir } from 'node:os'

/** What the testkit takes from the environment; nothing else here reads it. */
export interface TestkitConfig {
  /** A PostgreSQL whose role may create databases, instead of the embedded one. */
  testDatabaseUrl?: string
  /** A RabbitMQ, instead of a private node. */
  amqpUrl?: string
  /** Its management API, with credentials; needed when that is not at port 15672 of the same host. */
  amqpManagementUrl?: string
  /** Where the Jest run's own control server listens; set by the global setup for its workers. */
  controlUrl?: string
  /** Where the count of passed and failed tests goes. */
  countsFile?: string
  home: string
}

export const controlUrlVariable = 'WORKFLOW_SERVICE_TESTKIT_URL'

/** Reads the environment now, since Jest's global setup adds to it. */
export function readConfig(env: NodeJS.ProcessEnv = process.env): TestkitConfig {
  return {
    testDatabaseUrl: env['TEST_DATABASE_URL'] || undefined,
    amqpUrl: env['AMQP_URL'] || undefined,
    amqpManagementUrl: env['AMQP_MANAGEMENT_URL'] || undefined,
    controlUrl: env[controlUrlVariable] || undefined,
    countsFile: env['TEST_COUNTS_FILE'] || undefined,
    home: env['HOME'] || homedir() || tmpdir(),
  }
}

/** Tells the test files of this Jest run where the control server listens. */
export function announceControlUrl(url: string): void {
  process.env[controlUrlVariable] = url
}

import { homedir, tmpdir } from 'node:os'

const CONTROL_URL_VARIABLE = 'WORKFLOW_SERVICE_TESTKIT_URL'

/** Reads the environment at each call, because Jest's global setup adds to it. */
export function readConfig(env: NodeJS.ProcessEnv = process.env) {
  return {
    /** A RabbitMQ, instead of a private node. */
    amqpUrl: env['AMQP_URL'] || undefined,
    /**
     * The management API of `amqpUrl`, with credentials.
     * @default port 15672 of the same host
     */
    amqpManagementUrl: env['AMQP_MANAGEMENT_URL'] || undefined,
    /** The URL of this Jest run's control server; the global setup sets it for the workers. */
    controlUrl: env[CONTROL_URL_VARIABLE] || undefined,
    /** The file to write the number of passed and failed tests to. */
    countsFile: env['TEST_COUNTS_FILE'] || undefined,
    home: env['HOME'] || homedir() || tmpdir(),
  }
}

/** Passes the control server's URL to the workers of this Jest run. */
export function announceControlUrl(url: string): void {
  process.env[CONTROL_URL_VARIABLE] = url
}

/**
 * `wf`, the operator's command line. It sets the service up and shows what it does. It changes webhook sources through
 * the dispatcher's internal API and everything else through packages/database.
 */
export { type ExitStatus, runCli } from './run-cli.ts'

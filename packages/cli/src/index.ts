/**
 * `wf`, the operator's command line, and the local stack behind `npm start`. It sets the service up and shows what it
 * does; it changes webhook sources only through the dispatcher, and everything else through packages/database.
 */
export { type ExitStatus, runCli } from './run-cli.ts'

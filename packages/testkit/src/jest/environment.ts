import { TestEnvironment } from 'jest-environment-node'

// When the run is killed, a worker would continue to the end of its test file, and so would the servers that it started. A
// listener for 'disconnect' would keep the worker from exiting at the end. Test files cannot poll this themselves, because
// Jest gives them a copy of `process`.
if (process.send) setInterval(() => process.connected || process.exit(1), 500).unref()

/** Jest's Node environment, in a worker that ends with its run. */
export default class extends TestEnvironment {}

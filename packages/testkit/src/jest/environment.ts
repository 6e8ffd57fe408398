import { TestEnvironment } from 'jest-environment-node'

// A worker does not notice by itself that the run was killed: it would go on to the end of its test file and keep the
// servers that it started. Listening for 'disconnect' would keep the worker from ending by itself. Test files cannot do
// this, since their `process` is a copy.
if (process.send) setInterval(() => process.connected || process.exit(1), 500).unref()

/** Jest's environment for Node, in a process that ends with the run that it works for. */
export default class extends TestEnvironment {}

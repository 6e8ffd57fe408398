import { TestEnvironment } from 'jest-environment-node'

// When the run is killed, a worker would continue to the end of its test file, and so would the servers that it started. A
// listener for 'disconnect' would keep the worker from exiting at the end. Test files cannot poll this themselves, because
// Jest gives them a copy of `process`.
if (process.send) setInterval(() => process.connected || process.exit(1), 500).unref()

/** The part of the events of jest-circus that the environment reads. */
interface TestEvent {
  readonly name: string
  readonly test?: { readonly timeout?: number; readonly errors: unknown[] }
}

/**
 * Jest's Node environment, in a worker that ends with its run. A test that holds up the event loop beyond its time limit fails:
 * Jest's own limit is a timer, so a synchronous test passes however long it takes.
 */
export default class extends TestEnvironment {
  #startedMs = 0

  handleTestEvent({ name, test }: TestEvent, { testTimeout }: { readonly testTimeout: number }): void {
    if (name === 'test_fn_start') this.#startedMs = performance.now()
    if (name !== 'test_fn_success' || !test) return
    const timeoutMs = test.timeout ?? testTimeout
    const tookMs = Math.round(performance.now() - this.#startedMs)
    if (tookMs > timeoutMs)
      test.errors.push(new Error(`Took ${tookMs} ms, more than its time limit of ${timeoutMs} ms`))
  }
}

import { ModernFakeTimers } from '@jest/fake-timers'
import { ModuleMocker } from 'jest-mock'

// When the run is killed, a worker would continue to the end of its test file, and so would the servers that it
// started. A listener for 'disconnect' would keep the worker from exiting at the end.
if (process.send) setInterval(() => process.connected || process.exit(1), 500).unref()

/** The part of the events of jest-circus that the environment reads. */
interface TestEvent {
  readonly name: string
  readonly test?: { readonly timeout?: number; readonly errors: unknown[] }
}

type FakeTimersConfig = ConstructorParameters<typeof ModernFakeTimers>[0]['config']

/**
 * A Jest environment without a context of its own: `test-runner.ts` runs test files in the worker's own. A test that
 * holds up the event loop beyond its time limit fails: Jest's own limit is a timer, so a synchronous test passes
 * however long it takes.
 */
export default class NativeEnvironment {
  /** Jest sets `console` and `process.exit` of this object; those of the worker stay as they are. */
  readonly global: object = Object.create(globalThis, { process: { value: Object.create(process) } })
  readonly fakeTimersModern: ModernFakeTimers
  readonly moduleMocker = new ModuleMocker(globalThis)
  #startedMs = 0

  constructor({ projectConfig }: { readonly projectConfig: FakeTimersConfig }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis })
  }

  async setup(): Promise<void> {}

  /** Undoes what a test file may have left changed, because the next one shares the process. */
  async teardown(): Promise<void> {
    this.moduleMocker.restoreAllMocks()
    this.fakeTimersModern.dispose()
  }

  /** Required by jest-runner, and used only for modules that are loaded through Jest's own runtime. */
  getVmContext(): null {
    return null
  }

  handleTestEvent({ name, test }: TestEvent, { testTimeout }: { readonly testTimeout: number }): void {
    if (name === 'test_fn_start') this.#startedMs = performance.now()
    if (name !== 'test_fn_success' || !test) return
    const timeoutMs = test.timeout ?? testTimeout
    const tookMs = Math.round(performance.now() - this.#startedMs)
    if (tookMs > timeoutMs)
      test.errors.push(new Error(`Took ${tookMs} ms, more than its time limit of ${timeoutMs} ms`))
  }
}

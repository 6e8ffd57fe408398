import { createRequire, enableCompileCache, flushCompileCache, registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as jestGlobals from '@jest/globals'
import type Environment from './environment.ts'
import { setGlobals } from './globals.ts'

type Jest = typeof jestGlobals.jest
/** The parts of Jest's runtime that jest-circus calls. */
interface Runtime {
  requireInternalModule: (file: string) => unknown
  requireModule: (file: string) => unknown
  setGlobalsForRuntime: (globals: Omit<typeof jestGlobals, 'jest'>) => void
  unstable_shouldLoadAsEsm: (file: string) => boolean
  unstable_importModule: (file: string) => Promise<unknown>
  enterTestCode: () => void
  leaveTestCode: () => void
}
type TestRunner = (
  globalConfig: unknown,
  config: unknown,
  environment: Environment,
  runtime: Runtime,
  testPath: string,
  sendMessageToJest?: unknown,
) => Promise<unknown>

const require = createRequire(import.meta.url)
const circus = require('jest-circus/runner') as { readonly default: TestRunner }

const GLOBALS_URL = new URL('./globals.ts', import.meta.url).href
registerHooks({
  resolve: (specifier, context, nextResolve) =>
    specifier === '@jest/globals' ? { url: GLOBALS_URL, shortCircuit: true } : nextResolve(specifier, context),
})
enableCompileCache(join(import.meta.dirname, '../../../../node_modules/.cache/compile'))

/**
 * Runs a test file with jest-circus, as Jest's own runner does, but with Node's module loader instead of Jest's. Jest
 * loads and compiles all modules again for each test file, about 1 s of processor time for one that starts a service;
 * Node loads them once in a worker. So module-level state is shared by the test files of a worker: none of ours may
 * matter to a test. `jest.mock` of modules does not exist.
 */
const runNatively: TestRunner = async (globalConfig, config, environment, _runtime, testPath, sendMessageToJest) => {
  const runtime: Runtime = {
    requireInternalModule: requireAgain,
    requireModule: (file) => require(file),
    setGlobalsForRuntime: (globals) => setGlobals({ ...globals, jest: createJest(environment) }),
    unstable_shouldLoadAsEsm: () => true,
    unstable_importModule: async (file) => (await import(pathToFileURL(file).href)) as unknown,
    enterTestCode() {},
    leaveTestCode() {},
  }
  // Jest formats every stack anew by source maps, which there are none of: 2 % of the processor time of all tests.
  Reflect.deleteProperty(Error, 'prepareStackTrace')
  try {
    return await circus.default(globalConfig, config, environment, runtime, testPath, sendMessageToJest)
  } finally {
    // Node writes the cache when a process exits by itself, and Jest kills its workers.
    flushCompileCache()
  }
}
export default runNatively

/** Loads a module of jest-circus without the event handlers of the test file before. */
function requireAgain(file: string): unknown {
  delete require.cache[file]
  Reflect.deleteProperty(globalThis, Symbol.for('EVENT_HANDLERS'))
  return require(file)
}

/** The `jest` object, as far as our tests use it. */
function createJest({ fakeTimersModern: timers, moduleMocker: mocker }: Environment): Jest {
  const jest = {
    fn: mocker.fn.bind(mocker),
    spyOn: mocker.spyOn.bind(mocker),
    restoreAllMocks: () => mocker.restoreAllMocks(),
    useFakeTimers: (options?: Parameters<typeof timers.useFakeTimers>[0]) => timers.useFakeTimers(options),
    useRealTimers: () => timers.useRealTimers(),
    advanceTimersByTime: (ms: number) => timers.advanceTimersByTime(ms),
    advanceTimersByTimeAsync: async (ms: number) => await timers.advanceTimersByTimeAsync(ms),
    getTimerCount: () => timers.getTimerCount(),
  }
  return jest as unknown as Jest
}

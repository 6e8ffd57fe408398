// Jest's configuration for all packages. Unit tests are beside the source, tests that start servers in each package's
// test/. Node itself loads the test files and what they import (testRunner), so nothing is transformed.
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

export default {
  rootDir: dirname(dirname(fileURLToPath(import.meta.url))),
  roots: ['<rootDir>/packages', '<rootDir>/services', '<rootDir>/infra'],
  testMatch: ['**/*.test.ts'],
  testEnvironment: '<rootDir>/packages/testkit/src/jest/environment.ts',
  testRunner: '<rootDir>/packages/testkit/src/jest/test-runner.ts',
  testSequencer: '<rootDir>/packages/testkit/src/jest/sequencer.ts',
  transform: {},
  modulePathIgnorePatterns: ['<rootDir>/.local/'],
  // Faked in the process that also runs Node's own code, these would stop its streams.
  fakeTimers: { doNotFake: ['nextTick', 'queueMicrotask'] },
  // For a test that hangs: on a busy machine the longest take minutes. What a test waits for has a limit of its own.
  testTimeout: 300_000,
  // The servers that the tests start need processors too. With 2 processors, five workers use the time in which some of
  // them wait.
  maxWorkers: availableParallelism() > 10 ? '50%' : 5,
  // Jest keeps some memory of each test file: without the limit, marking it took 6 % of all processor time.
  workerIdleMemoryLimit: '500MB',
  // Half a second is too short on a busy machine.
  workerGracefulExitTimeout: 5_000,
  globalSetup: '<rootDir>/packages/testkit/src/jest/global-setup.ts',
  globalTeardown: '<rootDir>/packages/testkit/src/jest/global-teardown.ts',
}

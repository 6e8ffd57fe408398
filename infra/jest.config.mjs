// Jest's configuration for all packages: native ES modules, TypeScript through swc. Unit tests are beside the source, tests
// that start servers in each package's test/. Jest needs --experimental-vm-modules for ES modules; `npm test` and
// `npm run jest` set it.
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

export default {
  rootDir: dirname(dirname(fileURLToPath(import.meta.url))),
  roots: ['<rootDir>/packages', '<rootDir>/services', '<rootDir>/infra'],
  testMatch: ['**/*.test.ts'],
  testEnvironment: '<rootDir>/packages/testkit/src/jest/environment.ts',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '\\.ts$': ['@swc/jest', { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } }],
  },
  transformIgnorePatterns: ['/node_modules/'],
  modulePathIgnorePatterns: ['<rootDir>/.local/'],
  testTimeout: 30_000,
  // The servers that the tests start need processors too. With 2 processors, a third worker uses the time in which the others wait.
  maxWorkers: availableParallelism() > 4 ? '50%' : 3,
  // Jest keeps some memory of each test file: without the limit, marking it took 6 % of all processor time.
  workerIdleMemoryLimit: '500MB',
  reporters: ['default', '<rootDir>/packages/testkit/src/jest/count-reporter.ts'],
  globalSetup: '<rootDir>/packages/testkit/src/jest/global-setup.ts',
  globalTeardown: '<rootDir>/packages/testkit/src/jest/global-teardown.ts',
}

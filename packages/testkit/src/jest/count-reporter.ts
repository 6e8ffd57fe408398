import { writeFileSync } from 'node:fs'

interface TestCounts {
  numPassedTests: number
  numFailedTests: number
  numRuntimeErrorTestSuites: number
}

/**
 * Writes the number of passed and failed tests to `TEST_COUNTS_FILE`, for the last line of `npm test`. A test file that
 * cannot be loaded counts as one failed test.
 */
export default class CountReporter {
  onRunComplete(_contexts: unknown, results: TestCounts): void {
    const { TEST_COUNTS_FILE: countsFile } = process.env
    if (!countsFile) return
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites
    writeFileSync(countsFile, JSON.stringify({ passed: results.numPassedTests, failed }))
  }
}

import { writeFileSync } from 'node:fs'
import { readConfig } from '../config.ts'

interface TestCounts {
  numPassedTests: number
  numFailedTests: number
  numRuntimeErrorTestSuites: number
}

/**
 * Writes how many tests passed and failed to `TEST_COUNTS_FILE`, for the last line of `npm test`. A file whose tests
 * could not be run counts as one that failed.
 */
export default class CountReporter {
  onRunComplete(_contexts: unknown, results: TestCounts): void {
    const { countsFile } = readConfig()
    if (!countsFile) return
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites
    writeFileSync(countsFile, JSON.stringify({ passed: results.numPassedTests, failed }))
  }
}

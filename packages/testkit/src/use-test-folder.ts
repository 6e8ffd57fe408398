import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from '@jest/globals'

/**
 * Creates an empty folder for the test file, or for the `describe` block that calls it; removed after its last test.
 * After a kill, `removeDeadRunFolders` of dev-servers removes it.
 */
export function useTestFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), `workflow-service-test-${process.pid}-`))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

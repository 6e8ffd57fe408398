import { RULES_FILE_NAME } from '@workflow-service/contract'
import { FileReplacedError } from '../../run-errors.ts'
import type { AgentRun } from '../agent.ts'

/**
 * Reads the workflow's `rules.yaml`; undefined if it had none when the run was claimed.
 * @throws RunParkedError if the file was deleted or replaced since: the description that was claimed with it must not
 *   be followed without it.
 */
export async function readRulesText({
  workflow: { rulesFileId },
  readFile,
}: Pick<AgentRun, 'workflow' | 'readFile'>): Promise<string | undefined> {
  if (rulesFileId === null) return undefined
  const text = await readFile(rulesFileId)
  if (text === undefined) throw new FileReplacedError(RULES_FILE_NAME)
  return text
}

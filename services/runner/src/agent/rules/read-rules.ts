import { findRulesNameError, RULES_FILE_NAME } from '@workflow-service/contract'
import type { Rules } from '@workflow-service/rules'
import { createFairQueue } from '@workflow-service/service-kit'
import type { AgentRun } from '../agent.ts'
import { PlanError } from '../builtin/plan-error.ts'

/** Parsing goes on for 2 ms at a time. */
const waitForTurn = createFairQueue()

/**
 * Reads and compiles the workflow's rules; undefined if it has none.
 * @throws PlanError `rule_failed` if they cannot be used.
 */
export async function readRules({ run, readFile }: Pick<AgentRun, 'run' | 'readFile'>): Promise<Rules | undefined> {
  const { rulesFileId, rulesLikeFiles } = run.workflow
  for (const file of rulesLikeFiles ?? []) {
    // Stored before such names were refused. Its author relies on conditions that nothing would enforce.
    const error = findRulesNameError(file)
    if (error) throw new PlanError('rule_failed', `The name of a file ${error.message}`)
  }
  const text = rulesFileId === null ? undefined : await readFile(rulesFileId)
  if (text === undefined) return undefined
  // CEL takes 60 ms to load, and most organizations have no rules.
  const { parseRules } = await import('@workflow-service/rules')
  const parsed = await parseRules(text, () => waitForTurn(run.organizationId))
  if ('rules' in parsed) return parsed.rules
  const [first, ...others] = parsed.errors
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  throw new PlanError('rule_failed', `${first?.message ?? RULES_FILE_NAME}${more}`)
}

import { RULES_FILE_NAME } from '@workflow-service/contract'

export type Step = string | number

/** Where something is in a `rules.yaml`. */
export interface RulePlace {
  /** Such as `['deliveries', 0, 'payload', 'cents']`; empty for the whole file. */
  readonly steps: readonly Step[]
  readonly line?: number
}

/**
 * An error in a `rules.yaml`. Its message begins with the place: `rules.yaml, line 4, delivery 1, payload.cents: …`.
 */
export class RuleError extends Error {
  override name = 'RuleError'
  /** From 1; undefined for the whole file. */
  readonly line: number | undefined

  constructor({ steps, line }: RulePlace, reason: string) {
    const parts = [RULES_FILE_NAME, ...(line === undefined ? [] : [`line ${line}`]), ...describeSteps(steps)]
    super(`${parts.join(', ')}: ${reason}`)
    this.line = line
  }
}

function describeSteps([list, index, ...rest]: readonly Step[]): string[] {
  if (list === undefined) return []
  if (list !== 'deliveries' || typeof index !== 'number')
    return [formatPath([list, ...(index === undefined ? [] : [index]), ...rest])]
  return [`delivery ${index + 1}`, ...(rest.length > 0 ? [formatPath(rest)] : [])]
}

function formatPath(steps: readonly Step[]): string {
  return steps.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')
}

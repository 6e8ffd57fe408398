import { DRAFT_CODES, type RefusalDetails } from '@workflow-service/contract'

/** Reasons for which a run sends nothing at all; the codes of the run's error and of the note in the journal. */
export const REFUSALS = [...DRAFT_CODES, 'rule_failed', 'delivery_invalid'] as const
type Refusal = (typeof REFUSALS)[number]

/** The deliveries of a run cannot be planned, so that nothing is sent. The message has no period at the end. */
export class PlanError extends Error {
  override name = 'PlanError'
  readonly code: Refusal
  /** What a person needs to write rules; the journal has it. */
  readonly details: RefusalDetails | undefined

  constructor(code: Refusal, message: string, details?: RefusalDetails) {
    super(message)
    this.code = code
    this.details = details
  }
}

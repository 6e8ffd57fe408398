/** Reasons for which a run sends nothing at all; the codes of the run's error and of the note in the journal. */
export const REFUSALS = ['payload_incomplete', 'rules_needed', 'rule_failed', 'delivery_invalid'] as const
type Refusal = (typeof REFUSALS)[number]

/** The deliveries of a run cannot be planned, so that nothing is sent. The message has no period at the end. */
export class PlanError extends Error {
  override name = 'PlanError'
  readonly code: Refusal

  constructor(code: Refusal, message: string) {
    super(message)
    this.code = code
  }
}

import { CONTEXT_MAX_LENGTH, RULES_MAX_BYTES } from '../limits.ts'
import { Closed, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { DateTime, Str, Text, Uuid } from '../schema/values.ts'
import { RunStepOut } from './runs.ts'

export const TrialIn = Closed('TrialIn', 'A text to try a workflow with.', {
  id: Uuid('The id of the trial, chosen by the caller, so that a repeated request tries nothing twice.'),
  context: Text(CONTEXT_MAX_LENGTH, 'The text; white space at both ends is removed.', 1),
  session_id: Nullable(Uuid('The session whose earlier runs the agent reads; null for none.')),
  rules: Optional(Nullable(Text(RULES_MAX_BYTES, "A `rules.yaml` in place of the workflow's; null for that."))),
})

/** What becomes of a text that is tried. */
export const TRIED = {
  finished_at: Nullable(DateTime('When the result was known; null before.')),
  error: Nullable(Str('Why the run would fail: a code, a colon and a sentence. Null if it would not.')),
}

export const TrialOut = Closed('TrialOut', 'What a run would send.', {
  id: Uuid('The trial.'),
  context: Str('The text.'),
  created_at: DateTime('When it was asked for.'),
  ...TRIED,
  steps: List(
    RunStepOut,
    'The journal that the run would have, where each payload that would be sent counts as accepted.',
  ),
})
export type TrialOut = Static<typeof TrialOut>

import { Closed, List, Nullable, type Static } from '../schema/objects.ts'
import { DateTime, Int, Str, StringEnum, Uuid } from '../schema/values.ts'
import { Counts } from './common.ts'

export const USAGE_GROUPS = ['workflow', 'webhook_source', 'api_key', 'model', 'lookup'] as const
export const UsageOut = Closed('UsageOut', 'Usage by hour or day.', {
  bucket: StringEnum(['hour', 'day'], 'The width of a bucket: hours up to 3 days, then days (UTC).'),
  currency: Nullable(Str('The currency of costs, as an ISO 4217 code; null if no model has prices.')),
  buckets: List(
    Closed('UsageBucketOut', 'One bucket.', {
      at: DateTime('Its beginning.'),
      starts: Counts,
      deliveries: Counts,
    }),
    'Oldest first; also the empty ones.',
  ),
  groups: List(
    Closed('UsageGroupOut', 'The usage of one workflow, webhook source, API key, model or look-up in the period.', {
      id: Nullable(
        Uuid('What was used; null: a model, what is deleted, the others, or none, such as the key of a scheduled run.'),
      ),
      name: Str('Its name.'),
      starts: Counts,
      deliveries: Counts,
      run_ms_p50: Nullable(Int('Median time of a run, ± 5 %.')),
      run_ms_p95: Nullable(Int('95th percentile of the time of a run, ± 5 %.')),
      tokens: Int('Input and output tokens of models.'),
      cost_micros: Int('What models cost, in millionths of `currency`.'),
      lookup_calls: Int('Calls of look-ups, without those of trials.'),
      lookup_bytes: Int('The bytes that were read of their answers.'),
    }),
    'The most used first; beyond 100, the last one is of all others.',
  ),
})
/**
 * A member's usage counts only the workflows that the member sees, and payloads without a run. By webhook source, API
 * key, model and look-up it has no entries: what other workflows sent to a source would be in it. The newest hour is
 * counted when it is read, of at most 20,000 starts, and as many deliveries of each source; closed hours are rolled up
 * and kept.
 */
export type UsageOut = Static<typeof UsageOut>

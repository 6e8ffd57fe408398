import { type Static, Type } from 'typebox'
import { DateTime, Nullable, StringEnum, Uuid } from '../schema/types.ts'
import { Closed, PageOf } from './common.ts'

const Counts = Type.Unsafe<Record<string, number>>({
  type: 'object',
  additionalProperties: { type: 'integer' },
  description: 'Counts by name; a name without any is absent.',
})
export const ATTENTION_KINDS = ['run_failed', 'delivery_not_accepted', 'source_not_verified'] as const
export const OverviewOut = Closed('OverviewOut', 'The state of the organization at one glance.', {
  steps: Closed('FirstStepsOut', 'The first steps, derived from data.', {
    has_verified_source: Type.Boolean({ description: 'A webhook source is verified.' }),
    has_startable_workflow: Type.Boolean({ description: 'A workflow can be started.' }),
    has_api_key: Type.Boolean({ description: 'An API key is in force.' }),
    has_run: Type.Boolean({ description: 'A person has started a run, or ten runs have begun.' }),
    has_delivery: Type.Boolean({ description: 'A payload was sent.' }),
  }),
  starts: Counts,
  deliveries: Counts,
  waiting_runs: Type.Integer({ description: 'Runs that wait for an approval, at most 200.' }),
  attention: Type.Array(
    Closed('AttentionOut', 'Something that a person should look at.', {
      kind: StringEnum(ATTENTION_KINDS, { description: 'What it is.' }),
      id: Uuid({ description: 'The run, delivery or webhook source.' }),
      title: Type.String({ description: 'The name of the workflow or webhook source.' }),
      reason: Type.String({ description: 'What happened, as a sentence.' }),
      at: DateTime({ description: 'When.' }),
    }),
    { description: 'Newest first, at most 20, of the last 7 days.' },
  ),
})
export type OverviewOut = Static<typeof OverviewOut>

export const FOUND_KINDS = ['workflow', 'webhook_source', 'run', 'session', 'delivery', 'user', 'api_key'] as const
export const SearchOut = Closed('SearchOut', 'What was found.', {
  data: Type.Array(
    Closed('FoundOut', 'A thing of the organization.', {
      kind: StringEnum(FOUND_KINDS, { description: 'What it is.' }),
      id: Uuid({ description: 'Its id.' }),
      title: Type.String({ description: 'Its name, or what it belongs to.' }),
      detail: Type.String({ description: 'One line more; may be empty.' }),
    }),
    { description: 'Best first, at most 20.' },
  ),
})

export type SearchOut = Static<typeof SearchOut>

export const USAGE_GROUPS = ['workflow', 'webhook_source', 'api_key'] as const
export const UsageOut = Closed('UsageOut', 'Usage by hour or day.', {
  bucket: StringEnum(['hour', 'day'], { description: 'The width of a bucket: hours up to 3 days, then days (UTC).' }),
  buckets: Type.Array(
    Closed('UsageBucketOut', 'One bucket.', {
      at: DateTime({ description: 'Its beginning.' }),
      starts: Counts,
      deliveries: Counts,
    }),
    { description: 'Oldest first; also the empty ones.' },
  ),
  groups: Type.Array(
    Closed('UsageGroupOut', 'The usage of one workflow, webhook source or API key in the period.', {
      id: Nullable(Uuid({ description: 'What was used; null: none, such as the key of a scheduled run.' })),
      name: Type.String({ description: 'Its name.' }),
      starts: Counts,
      deliveries: Counts,
      run_ms_p50: Nullable(Type.Integer({ description: 'Median time of a run, ± 5 %.' })),
      run_ms_p95: Nullable(Type.Integer({ description: '95th percentile of the time of a run, ± 5 %.' })),
      tokens: Type.Integer({ description: 'Input and output tokens of models.' }),
    }),
    { description: 'The most used first, at most 100.' },
  ),
})
export type UsageOut = Static<typeof UsageOut>

export const AuditEventOut = Closed('AuditEventOut', 'A change, sign-in, refusal or link.', {
  id: Uuid({ description: 'The event.' }),
  at: DateTime({ description: 'When.' }),
  actor: Closed('AuditActorOut', 'Who did it.', {
    kind: StringEnum(['person', 'operator', 'service', 'stranger'], {
      description:
        'A person in the application, an operator with `wf`, the service itself, or a caller who is not signed in.',
    }),
    id: Nullable(Uuid({ description: 'The user.' })),
    name: Type.String({ description: 'The name at that time.' }),
  }),
  action: Type.String({ description: 'What was done, such as `webhook_source.saved`.' }),
  target: Nullable(
    Closed('AuditTargetOut', 'What it was done to.', {
      kind: Type.String({ description: 'The kind, such as `workflow`.' }),
      id: Nullable(Uuid({ description: 'Its id.' })),
      name: Type.String({ description: 'Its name at that time.' }),
    }),
  ),
  changes: Type.Array(
    Closed('AuditChangeOut', 'One changed field.', {
      field: Type.String({ description: 'The field.' }),
      old: Type.Unknown({ description: 'The value before; null for a new thing. Never a secret.' }),
      new: Type.Unknown({ description: 'The value after; null for a deleted thing. Never a secret.' }),
    }),
    { description: 'Old and new values, without secrets, keys, tokens and passwords.' },
  ),
  request_id: Nullable(Type.String({ description: 'The request.' })),
  address: Nullable(Type.String({ description: "The actor's IP address." })),
})
export type AuditEventOut = Static<typeof AuditEventOut>
export const AuditEventPage = PageOf('AuditEventPage', AuditEventOut)

/** What a hint of the event stream can name: the page reads again what it shows of it. */
export const EVENT_TOPICS = [
  'workflows',
  'webhook_sources',
  'deliveries',
  'runs',
  'sessions',
  'api_keys',
  'users',
  'organization',
] as const
export type EventTopic = (typeof EVENT_TOPICS)[number]

export const ManifestOut = Closed('ManifestOut', 'A manifest.', {
  yaml: Type.String({ description: 'The manifest; applying it changes nothing.' }),
})

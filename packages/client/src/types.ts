/** Shapes of the public API, as they are on the wire. */

/** A text with known values that may gain others. */
type Open<Known extends string> = Known | (string & {})

/** The organization that the API key belongs to. */
export interface Organization {
  id: string
  name: string
}

export interface Workflow {
  id: string
  name: string
  /** What the workflow does; the agent's task. */
  description: string
  /** `company_wide` (everyone in the organization) or `only_me` (a single user). New values may appear. */
  scope: Open<'company_wide' | 'only_me'>
  /** An inactive workflow cannot be started. */
  is_active: boolean
  auto_run: AutoRun
  /** Users with access, sorted by email address. */
  users: User[]
  /** Oldest first; paused triggers are included. */
  triggers: Trigger[]
  /** Sorted by folder, then by name; content is never included. */
  files: WorkflowFile[]
  /** ISO 8601, like `updated_at`. */
  created_at: string
  updated_at: string
}

/** The schedule of a workflow. */
export interface AutoRun {
  /** Whether the workflow reruns on a schedule; null if auto-run was never configured. */
  enabled: boolean | null
  /** Null without a schedule. */
  frequency: 'hourly' | 'daily' | 'weekly' | 'monthly' | null
}

export interface User {
  email: string
  /** First and last name; empty if neither is set. */
  name: string
}

export interface Trigger {
  id: string
  /** May be empty. */
  name: string
  /** False: paused. */
  is_active: boolean
  trigger_source: { slug: string; name: string }
  events: { slug: string; name: string }[]
  /** Extra conditions exactly as configured; null if there are none. */
  filters: Record<string, unknown> | null
  /** Precedes the context when the trigger starts the workflow; may be empty. */
  input_message: string
  subagent_sources: SubagentSource[]
}

export interface SubagentSource {
  /** Null if the type is `platform_internal`. */
  id: string | null
  name: string
  /** New values may appear. */
  type: Open<'api' | 'street' | 'platform_internal'>
}

/** A file of a workflow, without its content. */
export interface WorkflowFile {
  id: string
  name: string
  /** Containing folders from the top down; empty means the workflow's root. */
  path: string[]
}

export interface PageInfo {
  /** The `cursor` of the next page; null on the last one. */
  next_cursor: string | null
  has_more: boolean
}

/** The confirmation that a start is recorded and will run. */
export interface StartConfirmation {
  /** Identifier of this start, and of its run. */
  id: string
  workflow_id: string
  /** The given session, or the new one. */
  session_id: string
}

export interface ListParams {
  /** Only workflows whose name or description contains this text, ignoring case; at most 200 characters. */
  search?: string
  /** Workflows on a page, 1 to 100; default 25. A page may have fewer if they are large. */
  limit?: number
  /** The `next_cursor` of an earlier page; absent starts from the beginning. */
  cursor?: string
}

export interface StartParams {
  /** What the workflow is started with: 1 to 10,000 characters after trimming. */
  context: string
  /** An open session to continue, the `session_id` of an earlier start; absent or null opens a new one. */
  sessionId?: string | null
}

/** What a start became. */
export interface SessionRun {
  /** The `id` of the start. */
  id: string
  workflow_id: string
  session_id: string
  /** Position in the session, from 1. */
  number: number
  status: Open<'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'>
  /** Why it failed; null if it did not. */
  error: { code: string; message: string } | null
  created_at: string
  started_at: string | null
  /** Null before its end. */
  finished_at: string | null
}

export interface Run extends SessionRun {
  /** The payloads that were sent, oldest first. */
  deliveries: Delivery[]
}

export interface Delivery {
  id: string
  source_id: string
  source_name: string
  outcome: Open<'in_flight' | 'accepted' | 'rejected' | 'timed_out' | 'unreachable' | 'refused' | 'invalid' | 'unknown'>
  /** The HTTP status of the endpoint; null without one. */
  status: number | null
  created_at: string
}

export interface Session {
  id: string
  is_open: boolean
  start_count: number
  created_at: string
  closed_at: string | null
  /** The latest runs, the last one first, at most 20. */
  runs: SessionRun[]
}

/** One field that failed validation. */
export interface FieldError {
  /** Nested names are joined with a dot; `body` is the whole body. */
  field: string
  /** Stable; match on it. */
  code: string
  message: string
}

/** The codes of the API, and `unexpected_answer` for an answer that is not of this API. New codes may appear. */
export type ErrorCode = Open<
  | 'invalid_request'
  | 'invalid_json'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'unauthorized'
  | 'insufficient_scope'
  | 'organization_suspended'
  | 'not_found'
  | 'session_closed'
  | 'workflow_inactive'
  | 'no_active_api_trigger'
  | 'no_users_with_access'
  | 'idempotency_conflict'
  | 'validation_error'
  | 'rate_limited'
  | 'internal_error'
  | 'service_unavailable'
  | 'unexpected_answer'
>

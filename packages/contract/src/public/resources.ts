import { CONTEXT_MAX_LENGTH, CURSOR_MAX_LENGTH, LIST_DEFAULT_LIMIT, LIST_MAX_LIMIT } from '../limits.ts'
import { Closed, JsonObject, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Text, Uuid } from '../schema/values.ts'

export const OrganizationOut = Closed('OrganizationOut', 'The organization that the API key belongs to.', {
  id: Uuid('Organization identifier.'),
  name: Str('Organization name.', { examples: ['Acme'] }),
})
export type OrganizationOut = Static<typeof OrganizationOut>

/** How often a workflow can rerun. */
export const AUTO_RUN_FREQUENCIES = ['hourly', 'daily', 'weekly', 'monthly'] as const
export type AutoRunFrequency = (typeof AUTO_RUN_FREQUENCIES)[number]

export const AutoRunOut = Closed('AutoRunOut', 'The schedule of a workflow.', {
  enabled: Nullable(Bool('Whether the workflow reruns on a schedule; null if auto-run was never configured.')),
  frequency: Nullable(StringEnum(AUTO_RUN_FREQUENCIES, 'How often it reruns; null when there is no schedule.')),
})

export const UserOut = Closed('UserOut', 'A user with access to a workflow.', {
  email: Str("The user's email address.", { examples: ['ada@acme.test'] }),
  name: Str('Full name built from first and last name; empty when neither is set.', { examples: ['Ada Lovelace'] }),
})

export const TriggerSourceOut = Closed('TriggerSourceOut', "The origin of a trigger's events.", {
  slug: Str('Machine-readable name.', { examples: ['api'] }),
  name: Str('Human-readable name.', { examples: ['API'] }),
})

export const TriggerEventOut = Closed('TriggerEventOut', 'An event that fires a trigger.', {
  slug: Str('Machine-readable event name.', { examples: ['started'] }),
  name: Str('Human-readable event name.', { examples: ['Started'] }),
})

export const SubagentSourceOut = Closed(
  'SubagentSourceOut',
  'A source that subagents of a triggered session may use.',
  {
    id: Nullable(Uuid('Source identifier; null when type is `platform_internal`.')),
    name: Str('Source name.', { examples: ['Order intake'] }),
    type: Str(
      'Kind of source: `api` (a webhook source of the organization), `street` (not one of this service: it is stored and returned, and nothing is called) or `platform_internal` (a subagent built into the service). New values may be added; do not reject unknown ones.',
      { examples: ['api'] },
    ),
  },
)

export const TriggerOut = Closed('TriggerOut', 'A trigger of a workflow.', {
  id: Uuid('Trigger identifier.'),
  name: Str('Trigger name; may be empty.', { examples: ['Orders from the shop'] }),
  is_active: Bool('A paused trigger is inactive but still listed.'),
  trigger_source: TriggerSourceOut,
  events: List(TriggerEventOut, 'Events that fire the trigger and start the workflow.'),
  filters: Nullable(
    JsonObject(
      'Extra conditions on the events of the trigger source, exactly as configured: names and values are those of that source. The service stores and returns them; a start by the API does not evaluate them. Null when there are none.',
    ),
  ),
  input_message: Str('Text added to the session message when the trigger starts the workflow; may be empty.'),
  subagent_sources: List(
    SubagentSourceOut,
    'First the sources whose type is not `platform_internal`, then the others; each group sorted by name.',
  ),
})

export const FileOut = Closed('FileOut', 'A file of a workflow, without its content.', {
  id: Uuid('File identifier.'),
  name: Str('File name.', { examples: ['prices.md'] }),
  path: List(Str('A folder name.'), 'Containing folders from the top down; empty means the workflow root.', {
    examples: [['docs']],
  }),
})

export const WorkflowOut = Closed('WorkflowOut', 'A workflow.', {
  id: Uuid('Workflow identifier.'),
  name: Str('Workflow name.', { examples: ['Forward orders'] }),
  description: Str('What the workflow does.'),
  scope: Str(
    '`company_wide` (everyone in the organization) or `only_me` (a single user). New values may be added; do not reject unknown ones.',
    { examples: ['company_wide'] },
  ),
  is_active: Bool('An inactive workflow cannot be started through the API.'),
  auto_run: AutoRunOut,
  users: List(UserOut, 'Users with access, sorted by email address.'),
  triggers: List(TriggerOut, 'Oldest first; paused triggers are included.'),
  files: List(FileOut, 'Sorted by folder, then by name; content is never included.'),
  created_at: DateTime('Creation time.', { examples: ['2026-01-31T09:00:00.000Z'] }),
  updated_at: DateTime('Time of the last change.', { examples: ['2026-01-31T09:00:00.000Z'] }),
})
export type WorkflowOut = Static<typeof WorkflowOut>

/** The end of a page (contract README, "Pagination and search"). */
export const PageInfo = Closed('PageInfo', 'The end of a page.', {
  next_cursor: Nullable(Str('Pass it as `cursor` for the next page; null on the last page.')),
  has_more: Bool('Whether more results follow this page.'),
})

/** `limit` and `cursor` of every list. */
export const PAGE_QUERY = {
  limit: Optional(Int('Items on the page.', { minimum: 1, maximum: LIST_MAX_LIMIT, default: LIST_DEFAULT_LIMIT })),
  cursor: Optional(
    Str('The `next_cursor` of the previous page; omit it to start from the beginning.', {
      maxLength: CURSOR_MAX_LENGTH,
    }),
  ),
}

/** One page of workflows (contract README, "Pagination and search"). */
export const WorkflowPage = Closed('WorkflowPage', 'One page of workflows.', {
  data: List(WorkflowOut, 'Items of this page.'),
  pagination: PageInfo,
})
export type WorkflowPage = Static<typeof WorkflowPage>

/** A start request; the context is trimmed before it is checked (contract README, "Starts and sessions"). */
export const WorkflowStartIn = Closed('WorkflowStartIn', 'A start request.', {
  context: Text(
    CONTEXT_MAX_LENGTH,
    'The text that the workflow is started with. White space at both ends is trimmed; 1 to 10,000 characters remain.',
    1,
    { format: 'trimmed', examples: ['{"order_id": "A-1001", "total": 99.5}'] },
  ),
  session_id: Optional(
    Nullable(Uuid('An open session in the organization; when omitted or null, a new session is created.')),
  ),
})
export type WorkflowStartIn = Static<typeof WorkflowStartIn>

/** A start confirmation (contract README, "Starts and sessions"). */
export const WorkflowStartOut = Closed('WorkflowStartOut', 'A start confirmation.', {
  id: Uuid('Identifier of this start request.'),
  workflow_id: Uuid('The workflow being started.'),
  session_id: Uuid(
    'The session passed in, or the newly created one. Reuse it to start the workflow again in the same session.',
  ),
})
export type WorkflowStartOut = Static<typeof WorkflowStartOut>

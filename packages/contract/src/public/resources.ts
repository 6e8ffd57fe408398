import { type Static, Type } from 'typebox'
import { CONTEXT_MAX_LENGTH } from '../limits.ts'
import { CLOSED, DateTime, JsonObject, Nullable, StringEnum, Uuid } from '../schema/types.ts'

/** The organization of an API key (contract README, "Resources"). */
export const OrganizationOut = Type.Object(
  {
    id: Uuid({ description: 'Organization identifier.' }),
    name: Type.String({ description: 'Organization name.', examples: ['Acme'] }),
  },
  { ...CLOSED, title: 'OrganizationOut', description: 'The organization that the API key belongs to.' },
)
export type OrganizationOut = Static<typeof OrganizationOut>

/** How often a workflow can rerun. */
export const AUTO_RUN_FREQUENCIES = ['hourly', 'daily', 'weekly', 'monthly'] as const
export type AutoRunFrequency = (typeof AUTO_RUN_FREQUENCIES)[number]

/** The schedule of a workflow (contract README, "Resources"). */
export const AutoRunOut = Type.Object(
  {
    enabled: Nullable(
      Type.Boolean({
        description: 'Whether the workflow reruns on a schedule; null if auto-run was never configured.',
      }),
    ),
    frequency: Nullable(
      StringEnum(AUTO_RUN_FREQUENCIES, { description: 'How often it reruns; null when there is no schedule.' }),
    ),
  },
  { ...CLOSED, title: 'AutoRunOut', description: 'The schedule of a workflow.' },
)
export type AutoRunOut = Static<typeof AutoRunOut>

/** A user with access to a workflow (contract README, "Resources"). */
export const UserOut = Type.Object(
  {
    email: Type.String({ description: "The user's email address.", examples: ['ada@acme.test'] }),
    name: Type.String({
      description: 'Full name built from first and last name; empty when neither is set.',
      examples: ['Ada Lovelace'],
    }),
  },
  { ...CLOSED, title: 'UserOut', description: 'A user with access to a workflow.' },
)
export type UserOut = Static<typeof UserOut>

/** The origin of a trigger's events (contract README, "Resources"). */
export const TriggerSourceOut = Type.Object(
  {
    slug: Type.String({ description: 'Machine-readable name.', examples: ['api'] }),
    name: Type.String({ description: 'Human-readable name.', examples: ['API'] }),
  },
  { ...CLOSED, title: 'TriggerSourceOut', description: "The origin of a trigger's events." },
)

/** An event that fires a trigger (contract README, "Resources"). */
export const TriggerEventOut = Type.Object(
  {
    slug: Type.String({ description: 'Machine-readable event name.', examples: ['started'] }),
    name: Type.String({ description: 'Human-readable event name.', examples: ['Started'] }),
  },
  { ...CLOSED, title: 'TriggerEventOut', description: 'An event that fires a trigger.' },
)

/** A source that subagents of a triggered session may use (contract README, "Resources"). */
export const SubagentSourceOut = Type.Object(
  {
    id: Nullable(Uuid({ description: 'Source identifier; null when type is `platform_internal`.' })),
    name: Type.String({ description: 'Source name.', examples: ['Order intake'] }),
    type: Type.String({
      description:
        'Kind of source, such as `api`, `street` or `platform_internal` (a subagent built into the service). New values may be added; do not reject unknown ones.',
      examples: ['api'],
    }),
  },
  { ...CLOSED, title: 'SubagentSourceOut', description: 'A source that subagents of a triggered session may use.' },
)
export type SubagentSourceOut = Static<typeof SubagentSourceOut>

/** A trigger of a workflow (contract README, "Resources"). */
export const TriggerOut = Type.Object(
  {
    id: Uuid({ description: 'Trigger identifier.' }),
    name: Type.String({ description: 'Trigger name; may be empty.', examples: ['Orders from the shop'] }),
    is_active: Type.Boolean({ description: 'A paused trigger is inactive but still listed.' }),
    trigger_source: TriggerSourceOut,
    events: Type.Array(TriggerEventOut, { description: 'Events that fire the trigger and start the workflow.' }),
    filters: Nullable(JsonObject('Extra conditions exactly as configured; null when there are none.')),
    input_message: Type.String({
      description: 'Text added to the session message when the trigger starts the workflow; may be empty.',
    }),
    subagent_sources: Type.Array(SubagentSourceOut, {
      description:
        'First the sources whose type is not `platform_internal`, then the others; each group sorted by name.',
    }),
  },
  { ...CLOSED, title: 'TriggerOut', description: 'A trigger of a workflow.' },
)
export type TriggerOut = Static<typeof TriggerOut>

/** A file of a workflow, without its content (contract README, "Resources"). */
export const FileOut = Type.Object(
  {
    id: Uuid({ description: 'File identifier.' }),
    name: Type.String({ description: 'File name.', examples: ['prices.md'] }),
    path: Type.Array(Type.String({ description: 'A folder name.' }), {
      description: 'Containing folders from the top down; empty means the workflow root.',
      examples: [['docs']],
    }),
  },
  { ...CLOSED, title: 'FileOut', description: 'A file of a workflow, without its content.' },
)
export type FileOut = Static<typeof FileOut>

/** A workflow with everything that belongs to it (contract README, "Resources"). */
export const WorkflowOut = Type.Object(
  {
    id: Uuid({ description: 'Workflow identifier.' }),
    name: Type.String({ description: 'Workflow name.', examples: ['Forward orders'] }),
    description: Type.String({ description: 'What the workflow does.' }),
    scope: Type.String({
      description:
        '`company_wide` (everyone in the organization) or `only_me` (a single user). New values may be added; do not reject unknown ones.',
      examples: ['company_wide'],
    }),
    is_active: Type.Boolean({ description: 'An inactive workflow cannot be started through the API.' }),
    auto_run: AutoRunOut,
    users: Type.Array(UserOut, { description: 'Users with access, sorted by email address.' }),
    triggers: Type.Array(TriggerOut, { description: 'Oldest first; paused triggers are included.' }),
    files: Type.Array(FileOut, { description: 'Sorted by folder, then by name; content is never included.' }),
    created_at: DateTime({ description: 'Creation time.', examples: ['2026-01-31T09:00:00.000Z'] }),
    updated_at: DateTime({ description: 'Time of the last change.', examples: ['2026-01-31T09:00:00.000Z'] }),
  },
  { ...CLOSED, title: 'WorkflowOut', description: 'A workflow.' },
)
export type WorkflowOut = Static<typeof WorkflowOut>

/** The end of a page (contract README, "Pagination and search"). */
export const PageInfo = Type.Object(
  {
    next_cursor: Nullable(
      Type.String({ description: 'Pass it as `cursor` for the next page; null on the last page.' }),
    ),
    has_more: Type.Boolean({ description: 'Whether more results follow this page.' }),
  },
  { ...CLOSED, title: 'PageInfo', description: 'The end of a page.' },
)

/** One page of workflows (contract README, "Pagination and search"). */
export const WorkflowPage = Type.Object(
  { data: Type.Array(WorkflowOut, { description: 'Items of this page.' }), pagination: PageInfo },
  { ...CLOSED, title: 'WorkflowPage', description: 'One page of workflows.' },
)
export type WorkflowPage = Static<typeof WorkflowPage>

/** A start request; the context is trimmed before it is checked (contract README, "Starts and sessions"). */
export const WorkflowStartIn = Type.Object(
  {
    context: Type.String({
      minLength: 1,
      maxLength: CONTEXT_MAX_LENGTH,
      format: 'storable',
      description:
        'The text that the workflow is started with. White space at both ends is trimmed; 1 to 10,000 characters remain.',
      examples: ['{"order_id": "A-1001", "total": 99.5}'],
    }),
    session_id: Type.Optional(
      Nullable(
        Uuid({ description: 'An open session in the organization; when omitted or null, a new session is created.' }),
      ),
    ),
  },
  { ...CLOSED, title: 'WorkflowStartIn', description: 'A start request.' },
)
export type WorkflowStartIn = Static<typeof WorkflowStartIn>

/** A start confirmation (contract README, "Starts and sessions"). */
export const WorkflowStartOut = Type.Object(
  {
    id: Uuid({ description: 'Identifier of this start request.' }),
    workflow_id: Uuid({ description: 'The workflow being started.' }),
    session_id: Uuid({
      description:
        'The session passed in, or the newly created one. Reuse it to start the workflow again in the same session.',
    }),
  },
  { ...CLOSED, title: 'WorkflowStartOut', description: 'A start confirmation.' },
)
export type WorkflowStartOut = Static<typeof WorkflowStartOut>

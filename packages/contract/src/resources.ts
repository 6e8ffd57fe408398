import { type Static, Type } from 'typebox'
import { closed, DateTime, Nullable, StringEnum, Uuid } from './schema.ts'

/** Contract 2, Organization. */
export const OrganizationOut = Type.Object(
  {
    id: Uuid({ description: 'Organization identifier.' }),
    name: Type.String({ description: 'Organization name.', examples: ['Acme'] }),
  },
  { ...closed, title: 'OrganizationOut', description: 'The organization that the API key belongs to.' },
)
export type OrganizationOut = Static<typeof OrganizationOut>

/** How often a workflow reruns. */
export const AUTO_RUN_FREQUENCIES = ['hourly', 'daily', 'weekly', 'monthly'] as const
export type AutoRunFrequency = (typeof AUTO_RUN_FREQUENCIES)[number]

/** Contract 2, AutoRun. */
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
  { ...closed, title: 'AutoRunOut', description: 'The schedule of a workflow.' },
)
export type AutoRunOut = Static<typeof AutoRunOut>

/** Contract 2, User. */
export const UserOut = Type.Object(
  {
    email: Type.String({ description: "The user's email address.", examples: ['ada@acme.test'] }),
    name: Type.String({
      description: 'Full name built from first and last name; empty when neither is set.',
      examples: ['Ada Lovelace'],
    }),
  },
  { ...closed, title: 'UserOut', description: 'A user with access to a workflow.' },
)
export type UserOut = Static<typeof UserOut>

/** Contract 2, TriggerSource. */
export const TriggerSourceOut = Type.Object(
  {
    slug: Type.String({ description: 'Machine-readable name.', examples: ['api'] }),
    name: Type.String({ description: 'Human-readable name.', examples: ['API'] }),
  },
  { ...closed, title: 'TriggerSourceOut', description: 'Where the events of a trigger come from.' },
)

/** Contract 2, TriggerEvent. */
export const TriggerEventOut = Type.Object(
  {
    slug: Type.String({ description: 'Machine-readable event name.', examples: ['started'] }),
    name: Type.String({ description: 'Human-readable event name.', examples: ['Started'] }),
  },
  { ...closed, title: 'TriggerEventOut', description: 'An event that fires a trigger.' },
)

/** Contract 2, SubagentSource. */
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
  { ...closed, title: 'SubagentSourceOut', description: 'A source that subagents of a triggered session may use.' },
)
export type SubagentSourceOut = Static<typeof SubagentSourceOut>

/** Contract 2, Trigger. */
export const TriggerOut = Type.Object(
  {
    id: Uuid({ description: 'Trigger identifier.' }),
    name: Type.String({ description: 'Trigger name; may be empty.', examples: ['Orders from the shop'] }),
    is_active: Type.Boolean({ description: 'A paused trigger is inactive but still listed.' }),
    trigger_source: TriggerSourceOut,
    events: Type.Array(TriggerEventOut, { description: 'Events that fire the trigger and start the workflow.' }),
    filters: Nullable(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        additionalProperties: true,
        description: 'Extra conditions exactly as configured; null when there are none.',
      }),
    ),
    input_message: Type.String({
      description: 'Text added to the session message when the trigger starts the workflow; may be empty.',
    }),
    subagent_sources: Type.Array(SubagentSourceOut, {
      description: 'Sources whose type is not `platform_internal` first, then those; each group sorted by name.',
    }),
  },
  { ...closed, title: 'TriggerOut', description: 'What starts a workflow.' },
)
export type TriggerOut = Static<typeof TriggerOut>

/** Contract 2, File. */
export const FileOut = Type.Object(
  {
    id: Uuid({ description: 'File identifier.' }),
    name: Type.String({ description: 'File name.', examples: ['prices.md'] }),
    path: Type.Array(Type.String({ description: 'A folder name.' }), {
      description: 'Containing folders from the top down; empty means the workflow root.',
      examples: [['docs']],
    }),
  },
  { ...closed, title: 'FileOut', description: 'A file of a workflow, without its content.' },
)
export type FileOut = Static<typeof FileOut>

/** Contract 2, Workflow. */
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
  { ...closed, title: 'WorkflowOut', description: 'A workflow.' },
)
export type WorkflowOut = Static<typeof WorkflowOut>

/** Contract 2, PageInfo. */
export const PageInfo = Type.Object(
  {
    next_cursor: Nullable(
      Type.String({ description: 'Pass it as `cursor` for the next page; null on the last page.' }),
    ),
    has_more: Type.Boolean({ description: 'Whether more results follow this page.' }),
  },
  { ...closed, title: 'PageInfo', description: 'Where a page ends.' },
)

/** Contract 2, Page[WorkflowOut]. */
export const WorkflowPage = Type.Object(
  { data: Type.Array(WorkflowOut, { description: 'Items of this page.' }), pagination: PageInfo },
  { ...closed, title: 'WorkflowPage', description: 'One page of workflows.' },
)
export type WorkflowPage = Static<typeof WorkflowPage>

/** Contract 8: the context's length in code points, after trimming. */
export const CONTEXT_MAX_LENGTH = 10_000

/** Contract 2, start request. The context is trimmed before it is checked. */
export const WorkflowStartIn = Type.Object(
  {
    context: Type.String({
      minLength: 1,
      maxLength: CONTEXT_MAX_LENGTH,
      format: 'storable',
      description:
        'What to start the workflow with. White space at both ends is trimmed; 1 to 10,000 characters remain.',
      examples: ['{"order_id": "A-1001", "total": 99.5}'],
    }),
    session_id: Type.Optional(
      Nullable(
        Uuid({ description: 'An open session in the organization; when omitted or null, a new session is created.' }),
      ),
    ),
  },
  { ...closed, title: 'WorkflowStartIn', description: 'A start request.' },
)
export type WorkflowStartIn = Static<typeof WorkflowStartIn>

/** Contract 2, start confirmation. */
export const WorkflowStartOut = Type.Object(
  {
    id: Uuid({ description: 'Identifier of this start request.' }),
    workflow_id: Uuid({ description: 'The workflow being started.' }),
    session_id: Uuid({
      description:
        'The session passed in, or the newly created one. Reuse it to start the workflow again in the same session.',
    }),
  },
  { ...closed, title: 'WorkflowStartOut', description: 'A start confirmation.' },
)
export type WorkflowStartOut = Static<typeof WorkflowStartOut>

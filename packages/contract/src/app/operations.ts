import type { TSchema, TString } from 'typebox'
import {
  APP_BODY_MAX_BYTES,
  APP_BODY_MAX_DEPTH,
  APP_BODY_MAX_MEMBERS,
  CASE_MAX_BYTES,
  FILE_MEDIA_CONTENT_MAX_LENGTH,
  PAYLOAD_MAX_VALUES,
  RESEND_IDS_MAX,
  SEARCH_MAX_LENGTH,
  STRANGER_BODY_MAX_BYTES,
  STRANGER_BODY_MAX_MEMBERS,
} from '../limits.ts'
import { type BaseOperation, type ParamsOf, paramsOf } from '../schema/define-operations.ts'
import { Closed, List, Optional, Parameters, type Static } from '../schema/objects.ts'
import { Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { USAGE_MAX_DAYS } from '../limits.ts'
import { PAGE_QUERY, PageInfo } from '../public/resources.ts'
import { LookupCallOut } from '../internal/lookups.ts'
import { CancelQueuedIn, CancelQueuedOut, ModelKeyIn } from '../internal/resources.ts'
import * as notices from '../notices.ts'
import { APP_ROUTES } from './routes.ts'
import * as agents from './agents.ts'
import * as audit from './audit.ts'
import { ManifestOut } from './common.ts'
import * as evaluations from './evaluations.ts'
import * as overview from './overview.ts'
import * as people from './people.ts'
import * as resends from './resends.ts'
import * as runs from './runs.ts'
import * as signIn from './sign-in.ts'
import * as usage from './usage.ts'
import * as sources from './webhook-sources.ts'
import * as workflows from './workflows.ts'

/**
 * Who may call an operation. `link`: the holder of a one-time token, which the body contains. `signed_in`: any person
 * who is signed in. The others are roles in the organization; a higher role includes the lower ones.
 */
export type Access = 'public' | 'link' | 'signed_in' | 'member' | 'admin' | 'owner'

/** Whether the operation needs no sign-in. */
export function isOpen({ access }: Pick<AppOperation, 'access'>): boolean {
  return access === 'public' || access === 'link'
}

/**
 * One operation of the application's API: `services/app` mounts it, its OpenAPI document describes it, the page calls
 * it.
 */
export interface AppOperation extends BaseOperation {
  readonly access: Access
  /** Limits of the body that differ from those of all operations (`bodyLimitsOf`). */
  readonly bodyLimits?: { readonly maxBytes?: number; readonly maxMembers?: number }
  readonly success: {
    readonly status: 200 | 201 | 202 | 204 | 302
    readonly schema?: TSchema
    readonly description: string
  }
}

/** What the table below says of an operation. The rest is derived from its route, or the default (`DEFAULTS`). */
type Row = Pick<AppOperation, 'summary'> & Partial<Omit<AppOperation, 'id' | 'method' | 'path' | 'params'>>

/**
 * Returns the limits of an operation's body (contract README, "Limits"): in bytes, in fields and list items, and in
 * levels of objects and lists.
 */
export function bodyLimitsOf(operation: Pick<AppOperation, 'access' | 'bodyLimits'>): {
  maxBytes: number
  maxMembers: number
  maxDepth: number
} {
  return {
    maxBytes: isOpen(operation) ? STRANGER_BODY_MAX_BYTES : APP_BODY_MAX_BYTES,
    maxMembers: isOpen(operation) ? STRANGER_BODY_MAX_MEMBERS : APP_BODY_MAX_MEMBERS,
    maxDepth: APP_BODY_MAX_DEPTH,
    ...operation.bodyLimits,
  }
}

type Routes = typeof APP_ROUTES
type RouteId = keyof Routes

const DEFAULTS = { access: 'member', success: { status: 204, description: 'Done.' } } as const
type OrDefaults<Given> = Given & {
  readonly [Part in keyof typeof DEFAULTS]: Given extends Readonly<Record<Part, infer Value>>
    ? Value
    : (typeof DEFAULTS)[Part]
}
type Operations<Rows extends Record<RouteId, Row>> = {
  readonly [Id in RouteId]: { readonly id: Id; readonly description: string } & Routes[Id] &
    ParamsOf<Routes[Id]['path'], Record<string, TString>> &
    OrDefaults<Rows[Id]>
}

/**
 * Completes each row with its id, its route, the schema of its path parameters, which are all ids, and the defaults.
 */
function completeRows<Rows extends Record<RouteId, Row>>(rows: Rows): Operations<Rows> {
  const operations = (Object.keys(rows) as RouteId[]).map((id): [RouteId, AppOperation] => {
    const { [id]: row } = rows
    const { [id]: route } = APP_ROUTES
    const params = paramsOf(route.path, () => Uuid('An id.'))
    return [id, { id, ...route, ...params, ...DEFAULTS, description: `${row.summary}.`, ...row }]
  })
  return Object.fromEntries(operations) as unknown as Operations<Rows>
}

/** A success with a body; by default, the description of the schema is that of the response. */
function ok<Schema extends TSchema>(schema: Schema, description = descriptionOf(schema)) {
  return { status: 200, schema, description } as const
}

function created<Schema extends TSchema>(schema: Schema, description = descriptionOf(schema)) {
  return { status: 201, schema, description } as const
}

/** A page as in the public API: of `RunOut`, the `RunPage`. */
function page<Item extends TSchema>(item: Item) {
  const { title } = item as unknown as { readonly title: string }
  const description = 'One page; the newest entry first unless said otherwise.'
  return ok(
    Closed(title.replace(/Out$/, 'Page'), description, { data: List(item, 'The entries.'), pagination: PageInfo }),
  )
}

function descriptionOf(schema: TSchema): string {
  return (schema as { readonly description: string }).description
}

const PERSON = ok(signIn.MeOut)
const WORKFLOW = ok(workflows.WorkflowDetailOut)

const SearchText = Text(SEARCH_MAX_LENGTH, 'What to look for.')
const OidcText = Optional(Str('From the provider.', { maxLength: 4_000 }))

const PageQuery = Parameters({ ...PAGE_QUERY })

/** Every operation of the application's API (contract README, "Application"). */
export const APP_OPERATIONS = completeRows({
  getSetup: { access: 'public', summary: 'Read the state of the sign-in', success: ok(signIn.SetupStateOut) },
  tryCookie: {
    access: 'public',
    summary: 'Try whether the browser keeps cookies',
    description: 'Sets a cookie for a minute; the next call says whether it came back.',
    success: ok(signIn.CookieOut, 'Whether this request had the cookie.'),
  },
  setUp: {
    access: 'link',
    summary: 'Create the first owner',
    description: '409 `link_not_usable` if the link was used, revoked or expired.',
    body: signIn.SetUpIn,
    success: created(signIn.MeOut, 'The owner is signed in.'),
  },
  signIn: {
    access: 'public',
    summary: 'Sign in',
    description: 'One message for every failure: 401 `sign_in_failed`.',
    body: signIn.SignInIn,
    success: ok(signIn.MeOut),
  },
  startOidc: {
    access: 'public',
    summary: 'Begin a sign-in with OpenID Connect',
    query: Parameters({ next: OidcText }),
    success: { status: 302, description: 'To the provider.' },
  },
  finishOidc: {
    access: 'public',
    summary: 'End a sign-in with OpenID Connect',
    query: Parameters({
      code: OidcText,
      state: OidcText,
      iss: OidcText,
      error: OidcText,
      error_description: OidcText,
      session_state: OidcText,
    }),
    success: { status: 302, description: 'To the page.' },
  },
  openLink: {
    access: 'link',
    summary: 'Read what a link is for',
    description: 'Does not use the link.',
    body: signIn.OpenLinkIn,
    success: ok(signIn.LinkOut),
  },
  acceptLink: {
    access: 'link',
    summary: 'Accept an invitation, or set a new password or address',
    description:
      'Uses the link and signs the person in. An invitation of an address that has an account, and another address, need the password of the account: 401 `sign_in_failed`. A person whose account has none accepts an invitation of its address without one, within 10 minutes of a sign-in with the provider.',
    body: signIn.AcceptLinkIn,
    success: ok(signIn.MeOut),
  },
  getMe: { access: 'signed_in', summary: 'Read who is signed in', success: PERSON },
  saveMe: {
    access: 'signed_in',
    summary: 'Change the name',
    description: 'The email address is changed with a link of the kind `email`.',
    body: signIn.SaveMeIn,
    success: PERSON,
  },
  signOut: { access: 'signed_in', summary: 'Sign out' },
  changePassword: {
    access: 'signed_in',
    summary: 'Change the password',
    description: 'Ends every other sign-in of the account. Needs a confirmation of the last 10 minutes.',
    body: signIn.ChangePasswordIn,
    success: PERSON,
  },
  switchOrganization: {
    access: 'signed_in',
    summary: 'Work in another organization',
    description: '401 `unauthorized` if the person was signed out of it after this sign-in.',
    body: signIn.SwitchOrganizationIn,
    success: PERSON,
  },
  confirmPassword: {
    access: 'signed_in',
    summary: 'Confirm with the password',
    description: 'For 10 minutes, sensitive changes are allowed.',
    body: signIn.ConfirmIn,
    success: PERSON,
  },
  listSignIns: { access: 'signed_in', summary: 'List sign-ins', success: ok(signIn.SignInList) },
  endSignIn: { access: 'signed_in', summary: 'End a sign-in' },
  getOverview: { summary: 'Read the overview', success: ok(overview.OverviewOut) },
  getNotices: { access: 'admin', summary: 'Read the notices', success: ok(notices.NoticesOut) },
  saveNoticeWebhook: {
    access: 'admin',
    summary: 'Save where notices are sent',
    description: 'Signed like payloads. No request is made: test it.',
    body: notices.NoticeWebhookIn,
    success: ok(notices.NoticesOut),
  },
  deleteNoticeWebhook: { access: 'admin', summary: 'Send no more notices to the webhook' },
  testNoticeWebhook: {
    access: 'admin',
    summary: 'Send a test notice to the webhook',
    success: ok(notices.NoticeSentOut),
  },
  getMyNotices: { summary: 'Read which notices come by email', success: ok(notices.MyNoticesOut) },
  saveMyNotices: {
    summary: 'Choose which notices come by email',
    body: notices.MyNoticesIn,
    success: ok(notices.MyNoticesOut),
  },
  testMyNotices: { summary: 'Send a test notice to oneself', success: ok(notices.NoticeSentOut) },
  markAttentionDone: {
    summary: 'Mark failures as done',
    description: 'Of a group of the overview: they are counted as failed, but need no attention any more.',
    body: overview.AttentionDoneIn,
    success: ok(overview.AttentionDoneOut),
  },
  streamEvents: {
    summary: 'Follow changes',
    description: 'Server-sent events, each with `{"topics":[…]}`: what to read again.',
    success: { status: 200, description: 'A stream that ends when the sign-in ends.' },
  },
  search: {
    summary: 'Search everything by name, id or request id',
    query: Parameters({ q: SearchText }),
    success: ok(overview.SearchOut, 'What was found.'),
  },
  getOrganization: { summary: 'Read the organization', success: ok(people.AppOrganizationOut) },
  listUsers: { summary: 'List users by email address', query: PageQuery, success: page(people.AppUserOut) },
  getUsage: {
    summary: 'Read the usage',
    description: `At most ${USAGE_MAX_DAYS} days; the last 7 days by default.`,
    query: Parameters({
      ...sources.PERIOD_QUERY,
      by: Optional(StringEnum(usage.USAGE_GROUPS, 'The groups.', { default: 'workflow' })),
      thing_id: Optional(Uuid('Only of this workflow, webhook source, API key or look-up, as `by` says.')),
    }),
    success: ok(usage.UsageOut),
  },
  listWorkflows: {
    summary: 'List workflows',
    description: 'By creation, oldest first. A member sees `company_wide` workflows and those that list them.',
    query: Parameters({
      ...PAGE_QUERY,
      ...sources.IDS_QUERY,
      search: Optional(SearchText),
    }),
    success: page(workflows.WorkflowRowOut),
  },
  createWorkflow: {
    summary: 'Create a workflow',
    description: 'Repeated with the same id and values, it answers the same. The person is among its users.',
    body: workflows.CreateWorkflowIn,
    success: created(workflows.WorkflowDetailOut),
  },
  getWorkflow: { summary: 'Read a workflow', success: ok(workflows.WorkflowReadOut) },
  saveWorkflow: { summary: 'Save a workflow', body: workflows.SaveWorkflowIn, success: WORKFLOW },
  deleteWorkflow: {
    summary: 'Delete a workflow',
    description: 'With its triggers, files and runs. 409 `workflow_busy` while a run has not ended.',
  },
  duplicateWorkflow: {
    summary: 'Duplicate a workflow',
    body: workflows.DuplicateWorkflowIn,
    success: created(workflows.WorkflowDetailOut),
  },
  exportWorkflow: {
    summary: 'Export a workflow as a manifest',
    description: 'With the users that it lists. 409 `manifest_too_large` beyond 10 MiB: use `wf export`.',
    success: ok(ManifestOut),
  },
  setWorkflowActive: { summary: 'Switch a workflow on or off', body: workflows.SetActiveIn, success: WORKFLOW },
  saveAutoRun: { summary: 'Save the schedule', body: workflows.SaveAutoRunIn, success: WORKFLOW },
  saveWorkflowAgent: { summary: 'Save model and budgets', body: workflows.SaveWorkflowAgentIn, success: WORKFLOW },
  listModels: { summary: 'List the models that workflows may choose', success: ok(workflows.ModelList) },
  startScheduled: {
    summary: 'Start a workflow as its schedule does',
    description: 'Now, in a new session, with the context of a scheduled run. The schedule stays as it is.',
    body: workflows.StartScheduledIn,
    success: { status: 202, schema: workflows.AppStartOut, description: 'Accepted.' },
  },
  saveWorkflowUsers: {
    summary: 'Save the people with access',
    body: workflows.SaveWorkflowUsersIn,
    bodyLimits: { maxMembers: 6_000 },
    success: WORKFLOW,
  },
  saveTrigger: {
    summary: 'Save a trigger',
    body: workflows.SaveTriggerIn,
    // 100 events and 100 sources with long names, an input message of 200 KB, and filters of any shape.
    bodyLimits: { maxBytes: 512 * 1024, maxMembers: 2_000 },
    success: WORKFLOW,
  },
  deleteTrigger: { summary: 'Delete a trigger', query: workflows.VersionQuery, success: WORKFLOW },
  getFile: { summary: 'Read a file', success: ok(workflows.AppFileOut) },
  saveFile: {
    summary: 'Save a file',
    body: workflows.SaveFileIn,
    // 1 MiB in which every character takes two bytes as JSON, or a PDF or an image in base64.
    bodyLimits: { maxBytes: FILE_MEDIA_CONTENT_MAX_LENGTH + APP_BODY_MAX_BYTES },
    success: WORKFLOW,
  },
  deleteFile: { summary: 'Delete a file', query: workflows.VersionQuery, success: WORKFLOW },
  listWorkflowVersions: { summary: 'List the versions of a workflow', success: ok(workflows.WorkflowVersionList) },
  getWorkflowVersion: {
    summary: 'Compare a version of a workflow',
    query: workflows.VersionCompareQuery,
    success: ok(workflows.WorkflowVersionDetailOut),
  },
  restoreWorkflowVersion: {
    summary: 'Restore a version of a workflow',
    description: 'Its task, triggers and files become a new version. 409 `changed_meanwhile` if a newer one was saved.',
    body: workflows.RestoreVersionIn,
    success: WORKFLOW,
  },
  draftRules: { summary: 'Draft the rules that a workflow needs', success: ok(runs.RulesDraftOut) },
  checkRules: {
    summary: 'Check rules without saving them',
    body: workflows.CheckRulesIn,
    success: ok(workflows.RulesCheckOut),
  },
  getReadiness: { summary: 'Read whether a workflow can start', success: ok(workflows.ReadinessOut) },
  tryWorkflow: {
    summary: 'Try a workflow without sending',
    description:
      "Needs no trigger, and the workflow need not be active. Replaces the person's earlier trial of the workflow; kept for an hour.",
    body: evaluations.TrialIn,
    success: { status: 202, schema: evaluations.TrialOut, description: 'Accepted: read it again for its result.' },
  },
  getTrial: { summary: 'Read what a run would send', success: ok(evaluations.TrialOut) },
  listCases: { summary: 'List the cases of a workflow', success: ok(evaluations.CaseList) },
  getCase: { summary: 'Read a case', success: ok(evaluations.CaseOut) },
  saveCase: {
    summary: 'Keep a text with the payloads that are right',
    description: 'Retention deletes a case that was not evaluated for as long as runs are kept.',
    body: evaluations.CaseIn,
    bodyLimits: { maxBytes: CASE_MAX_BYTES + APP_BODY_MAX_BYTES, maxMembers: PAYLOAD_MAX_VALUES },
    success: ok(evaluations.CaseOut),
  },
  deleteCase: { summary: 'Delete a case with its results', query: workflows.VersionQuery },
  listEvaluations: { summary: 'List the evaluations of a workflow', success: ok(evaluations.EvaluationList) },
  startEvaluation: {
    summary: 'Try all cases of a workflow without sending',
    description: 'Costs count in the budgets. 409 `quota_exceeded` while five of the organization have not ended.',
    body: evaluations.EvaluationIn,
    success: { status: 202, schema: evaluations.EvaluationDetailOut, description: 'Accepted: read it again.' },
  },
  getEvaluation: { summary: 'Read an evaluation', success: ok(evaluations.EvaluationDetailOut) },
  stopEvaluation: {
    summary: 'Stop an evaluation',
    description: 'No further case begins. No change if it has ended.',
    success: ok(evaluations.EvaluationDetailOut),
  },
  startWorkflow: {
    summary: 'Start a workflow',
    description: 'By the rules of the public API. Repeated with the same id, it starts nothing and answers the same.',
    body: workflows.AppStartIn,
    success: { status: 202, schema: workflows.AppStartOut, description: 'Accepted.' },
  },
  listWebhookSources: { summary: 'List webhook sources', success: ok(sources.AppWebhookSourceList) },
  getWebhookSource: { summary: 'Read a webhook source', success: ok(sources.AppWebhookSourceOut) },
  listSourceWorkflows: {
    summary: 'List the workflows that name a webhook source',
    description: 'At most 20, of the first 100 in which the name occurs.',
    success: ok(sources.SourceWorkflowList),
  },
  saveWebhookSource: {
    access: 'admin',
    summary: 'Verify and save a webhook source',
    description:
      'One verification request, at most 10 seconds; nothing is saved unless the endpoint confirms (422 `verification_failed`).',
    body: sources.SaveWebhookSourceIn,
    bodyLimits: { maxMembers: PAYLOAD_MAX_VALUES + APP_BODY_MAX_MEMBERS },
    success: ok(sources.AppWebhookSourceOut),
  },
  saveWebhookSourceSettings: {
    access: 'admin',
    summary: "Save a webhook source's settings",
    description: 'Without a verification request, so also while the endpoint is down.',
    body: sources.SaveWebhookSourceSettingsIn,
    success: ok(sources.AppWebhookSourceOut),
  },
  deleteWebhookSource: { access: 'admin', summary: 'Delete a webhook source', description: 'Its log stays readable.' },
  testWebhookSource: { access: 'admin', summary: 'Test a webhook source', success: ok(sources.AppDeliveryOut) },
  pauseWebhookSource: {
    access: 'admin',
    summary: 'Pause a webhook source',
    description: 'Its payloads wait, up to 3 days, until it is resumed. Those under way are finished.',
    success: ok(sources.AppWebhookSourceOut),
  },
  resumeWebhookSource: {
    access: 'admin',
    summary: 'Resume a webhook source',
    description: 'Runs that wait for it go on, in the order of their starts.',
    success: ok(sources.AppWebhookSourceOut),
  },
  listLookups: { summary: 'List look-ups', success: ok(agents.AppLookupList) },
  getLookup: { summary: 'Read a look-up', success: ok(agents.AppLookupOut) },
  saveLookup: {
    access: 'admin',
    summary: 'Save a look-up',
    description: 'A server of the Model Context Protocol is asked for its tools, at most 10 seconds.',
    body: agents.SaveLookupIn,
    success: ok(agents.AppLookupOut),
  },
  getInstructions: { summary: 'Read what agents with a model follow', success: ok(agents.InstructionsOut) },
  saveInstructions: {
    access: 'admin',
    summary: "Save the organization's instructions",
    description: 'Runs that begin from now on follow them. To restore a version, save its text.',
    body: agents.SaveInstructionsIn,
    success: ok(agents.InstructionsOut),
  },
  listModelKeys: {
    access: 'admin',
    summary: "List the organization's own keys of models",
    success: ok(agents.ModelKeyList, 'The keys, without the keys themselves.'),
  },
  saveModelKey: {
    access: 'admin',
    summary: "Save a key of the organization's own for a model",
    description: 'In place of an earlier one, and of the key of the service.',
    body: ModelKeyIn,
    success: ok(agents.ModelKeyList),
  },
  deleteModelKey: { access: 'admin', summary: 'Delete a key: runs use that of the service again' },
  deleteLookup: { access: 'admin', summary: 'Delete a look-up' },
  testLookup: {
    access: 'admin',
    summary: 'Call a tool of a look-up',
    description: 'As a run would; at most 10 seconds.',
    body: agents.TestLookupIn,
    success: ok(LookupCallOut, 'What it answered.'),
  },
  // A page of a member may have fewer entries than the limit although others follow: contract README, "Application".
  listDeliveries: {
    summary: 'Read the log of a webhook source',
    query: sources.AppDeliveryQuery,
    success: page(sources.AppDeliveryOut),
  },
  listAllDeliveries: {
    summary: 'List the deliveries of all webhook sources',
    description:
      'Newest first. With a search, status, workflow or resends, a page may have no delivery: follow `next_cursor`.',
    query: sources.AllDeliveriesQuery,
    success: page(sources.AppDeliveryOut),
  },
  getDelivery: { summary: 'Read a delivery', success: ok(sources.DeliveryDetailOut) },
  resendDelivery: {
    summary: 'Send a delivery again',
    description:
      'As a new delivery with the id of the path, signed with the current secret. Answers when its outcome is known. Repeated, it sends nothing and answers the same.',
    body: sources.ResendIn,
    success: ok(sources.DeliveryDetailOut),
  },
  previewResends: {
    summary: 'Preview sending payloads again',
    body: resends.ResendPreviewIn,
    bodyLimits: { maxMembers: APP_BODY_MAX_MEMBERS + RESEND_IDS_MAX },
    success: ok(resends.ResendPreviewOut, 'What would be sent.'),
  },
  createResendJob: {
    summary: 'Send payloads again',
    description:
      'Each payload that matches once, oldest first, but for those of webhook sources that ask for approval, those that a running job has not sent yet, and those that are being sent again. 409 `not_resendable` if nothing is left.',
    body: resends.ResendJobIn,
    bodyLimits: { maxMembers: APP_BODY_MAX_MEMBERS + RESEND_IDS_MAX },
    success: created(resends.ResendJobOut),
  },
  listResendJobs: {
    summary: 'List jobs that send payloads again',
    description: 'The newest 50; of a member those that they started.',
    success: ok(resends.ResendJobList),
  },
  getResendJob: { summary: 'Read a job that sends payloads again', success: ok(resends.ResendJobOut) },
  stopResendJob: {
    summary: 'Stop sending payloads again',
    description: 'Before the next payload. No change if the job has ended.',
    success: ok(resends.ResendJobOut),
  },
  countApprovals: { summary: 'Count payloads that wait', success: ok(runs.WaitingCountOut) },
  listApprovals: { summary: 'List payloads that wait', success: ok(runs.WaitingApprovalList) },
  decideApprovals: {
    access: 'admin',
    summary: 'Approve or decline several payloads',
    description: 'Each as by itself; one that does not wait any more is left as it is.',
    body: runs.DecideIn,
    success: ok(runs.DecideOut),
  },
  approveDelivery: {
    access: 'admin',
    summary: 'Approve a payload',
    description:
      'The run continues and sends exactly this payload, or the edited one. 409 `not_waiting` if it was decided or expired, or the run has ended.',
    body: runs.ApproveIn,
    bodyLimits: { maxMembers: PAYLOAD_MAX_VALUES + APP_BODY_MAX_MEMBERS },
    success: ok(runs.RunDetailOut),
  },
  declineDelivery: {
    access: 'admin',
    summary: 'Decline a payload',
    description:
      'It is never sent, and the run continues without it. 409 `not_waiting` if it was decided or expired, or the run has ended.',
    body: runs.DeclineIn,
    success: ok(runs.RunDetailOut),
  },
  listRuns: {
    summary: 'List runs',
    description: 'Newest first. With a search, a page may have no run: follow `next_cursor`.',
    query: runs.RunListQuery,
    success: page(runs.RunOut),
  },
  getRun: { summary: 'Read a run', success: ok(runs.RunDetailOut) },
  cancelRun: {
    summary: 'Cancel a run',
    description: 'Before its next step: a payload under way is finished. 409 `run_ended` if it has ended.',
    success: ok(runs.RunDetailOut),
  },
  cancelQueuedRuns: {
    summary: 'Cancel the queued runs of a workflow or session',
    body: CancelQueuedIn,
    success: ok(CancelQueuedOut, 'How many were cancelled.'),
  },
  getRunPrompts: {
    access: 'admin',
    summary: 'Read what a model was asked',
    description: 'Empty for a run without a model.',
    success: ok(runs.RunPromptsOut),
  },
  getRulesDraft: {
    summary: 'Draft the rules that a run needs',
    description:
      '404 for a run that did not fail with `needs_a_model`, `payload_incomplete`, `rules_needed` or `no_destination`.',
    success: ok(runs.RulesDraftOut),
  },
  listSessions: { summary: 'List sessions', query: runs.SessionListQuery, success: page(runs.SessionOut) },
  createSession: { summary: 'Open a session', body: runs.CreateSessionIn, success: created(runs.SessionDetailOut) },
  getSession: { summary: 'Read a session', success: ok(runs.SessionDetailOut) },
  closeSession: {
    summary: 'Close a session',
    description: 'Accepted starts still run.',
    success: ok(runs.SessionDetailOut),
  },
  listApiKeys: {
    access: 'admin',
    summary: 'List API keys',
    description: 'Newest first, revoked ones included.',
    query: PageQuery,
    success: page(runs.ApiKeyOut),
  },
  createApiKey: {
    access: 'admin',
    summary: 'Create an API key',
    description: 'The response holds the key, once.',
    body: runs.CreateApiKeyIn,
    success: created(runs.NewApiKeyOut),
  },
  revokeApiKey: { access: 'admin', summary: 'Revoke an API key', description: 'It stops working within 5 seconds.' },
  createUser: {
    access: 'admin',
    summary: 'Add a user',
    description: 'Only an owner makes an owner.',
    body: people.CreateUserIn,
    success: created(people.AppUserOut),
  },
  saveUser: {
    access: 'admin',
    summary: 'Change a user',
    description: 'To or from owner: only an owner, with a confirmation. 409 `last_owner` if none would be left.',
    body: people.SaveUserIn,
    success: ok(people.AppUserOut),
  },
  deleteUser: { access: 'admin', summary: 'Remove a user' },
  createUserLink: {
    access: 'admin',
    summary: 'Make a link for a user',
    description:
      'An invitation (72 hours), a reset link (1 hour), or a link with which the person gets another email address (72 hours). The last two need a confirmation of the last 10 minutes.',
    body: people.CreateUserLinkIn,
    success: created(people.UserLinkOut),
  },
  signUserOut: { access: 'admin', summary: 'Sign a user out everywhere' },
  listAuditEvents: {
    access: 'admin',
    summary: 'Read the audit log',
    query: Parameters({
      ...PAGE_QUERY,
      ...sources.PERIOD_QUERY,
      ...sources.IDS_QUERY,
      actor_id: Optional(Uuid('Only events of this user.')),
      target_id: Optional(Uuid('Only events of this thing.')),
      action: Optional(Text(100, 'Only this action, or all of a kind: `workflow.`.')),
    }),
    success: page(audit.AuditEventOut),
  },
  exportManifest: {
    access: 'admin',
    summary: 'Export the organization as a manifest',
    description:
      'Users, webhook sources and workflows, without keys and secrets. 409 `manifest_too_large` beyond 10 MiB: use `wf export`.',
    success: ok(ManifestOut),
  },
  saveOrganization: {
    access: 'admin',
    summary: 'Save name, budget and offered models of the organization',
    description: 'What is absent stays as it is.',
    body: people.SaveOrganizationIn,
    success: ok(people.AppOrganizationOut),
  },
  deleteOrganization: {
    access: 'owner',
    summary: 'Delete the organization',
    description: 'With everything in it. Needs a confirmation of the last 10 minutes.',
    body: people.DeleteOrganizationIn,
  },
} as const satisfies Record<RouteId, Row>)

export type AppOperations = typeof APP_OPERATIONS
export type AppOperationId = keyof AppOperations

type SchemaOf<Operation, Part extends string> =
  Operation extends Readonly<Record<Part, infer Schema extends TSchema>> ? Static<Schema> : undefined

/** What the page sends for an operation: only the parts that it has. */
export type AppRequest<Id extends AppOperationId> = {
  readonly [
    Part in 'params' | 'query' | 'body' as SchemaOf<AppOperations[Id], Part> extends undefined ? never : Part
  ]: SchemaOf<AppOperations[Id], Part>
}

/** The body of the response to an operation; undefined without one. */
export type AppResponseBody<Id extends AppOperationId> = SchemaOf<AppOperations[Id]['success'], 'schema'>

import { type TSchema, Type, type Static } from 'typebox'
import {
  APP_BODY_MAX_BYTES,
  APP_BODY_MAX_DEPTH,
  APP_BODY_MAX_MEMBERS,
  PAYLOAD_MAX_VALUES,
  SEARCH_MAX_LENGTH,
  STRANGER_BODY_MAX_BYTES,
  STRANGER_BODY_MAX_MEMBERS,
} from '../limits.ts'
import { CLOSED, StringEnum, Uuid } from '../schema/types.ts'
import { APP_ROUTES } from './routes.ts'
import { AuditEventPage, ManifestOut, OverviewOut, SearchOut, USAGE_GROUPS, UsageOut } from './overview.ts'
import {
  AppOrganizationOut,
  AppUserOut,
  AppUserPage,
  CreateUserIn,
  CreateUserLinkIn,
  DeleteOrganizationIn,
  SaveOrganizationIn,
  SaveUserIn,
  UserLinkOut,
} from './people.ts'
import {
  ApiKeyPage,
  CreateApiKeyIn,
  CreateSessionIn,
  DeclineIn,
  NewApiKeyOut,
  RulesDraftOut,
  RunDetailOut,
  RunListQuery,
  RunPage,
  RunPromptsOut,
  SessionDetailOut,
  SessionListQuery,
  SessionPage,
} from './runs.ts'
import {
  AcceptLinkIn,
  ChangePasswordIn,
  ConfirmIn,
  CookieOut,
  LinkOut,
  MeOut,
  OpenLinkIn,
  SaveMeIn,
  SetUpIn,
  SetupStateOut,
  SignInIn,
  SignInList,
  SwitchOrganizationIn,
} from './sign-in.ts'
import {
  AppDeliveryOut,
  AppDeliveryPage,
  AppDeliveryQuery,
  AppWebhookSourceList,
  AppWebhookSourceOut,
  DeliveryDetailOut,
  IDS_QUERY,
  PAGE_QUERY,
  PERIOD_QUERY,
  ResendIn,
  SaveWebhookSourceIn,
  SaveWebhookSourceSettingsIn,
} from './webhook-sources.ts'
import {
  AppFileOut,
  AppStartIn,
  AppStartOut,
  CreateWorkflowIn,
  DuplicateWorkflowIn,
  ReadinessOut,
  SaveAutoRunIn,
  SaveFileIn,
  SaveTriggerIn,
  SaveWorkflowIn,
  SaveWorkflowUsersIn,
  SetActiveIn,
  VersionQuery,
  WorkflowDetailOut,
  WorkflowReadOut,
  WorkflowRowPage,
} from './workflows.ts'

/**
 * Who may call an operation. `link`: the holder of a one-time token, which the body contains. `signed_in`: any person who is
 * signed in. The others are roles in the organization; a higher role includes the lower ones.
 */
export const WHO = ['anyone', 'link', 'signed_in', 'member', 'admin', 'owner'] as const
export type Who = (typeof WHO)[number]

/** One operation of the application's API: `services/app` mounts it, its OpenAPI document describes it, the page calls it. */
export interface AppOperation {
  readonly id: string
  readonly method: 'get' | 'put' | 'post' | 'patch' | 'delete'
  /** With parameters in braces: `/app/workflows/{workflow_id}`. */
  readonly path: string
  readonly who: Who
  readonly summary: string
  readonly description: string
  readonly params?: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  /** Fields of the body whose surrounding white space is removed before they are checked. */
  readonly trimmed?: readonly string[]
  /** Limits of the body that differ from those of all operations (`bodyLimitsOf`). */
  readonly bodyLimits?: { readonly maxBytes?: number; readonly maxMembers?: number }
  readonly success: {
    readonly status: 200 | 201 | 202 | 204 | 302
    readonly schema?: TSchema
    readonly description: string
  }
}

/**
 * Returns the limits of an operation's body (contract README, "Limits"): in bytes, in fields and list items, and in levels of objects
 * and lists.
 */
export function bodyLimitsOf({ who, bodyLimits }: Pick<AppOperation, 'who' | 'bodyLimits'>): {
  maxBytes: number
  maxMembers: number
  maxDepth: number
} {
  const isStranger = who === 'anyone' || who === 'link'
  return {
    maxBytes: isStranger ? STRANGER_BODY_MAX_BYTES : APP_BODY_MAX_BYTES,
    maxMembers: isStranger ? STRANGER_BODY_MAX_MEMBERS : APP_BODY_MAX_MEMBERS,
    maxDepth: APP_BODY_MAX_DEPTH,
    ...bodyLimits,
  }
}

/** Makes the schema of path parameters, which are all ids. */
function Params<const Name extends string>(...names: Name[]) {
  const properties = Object.fromEntries(names.map((name) => [name, Uuid({ description: 'An id.' })]))
  return Type.Object(properties as Record<Name, ReturnType<typeof Uuid>>, {
    ...CLOSED,
    description: 'Path parameters.',
  })
}

const SignInParams = Params('sign_in_id')
const WorkflowParams = Params('workflow_id')
const TriggerParams = Params('workflow_id', 'trigger_id')
const FileParams = Params('workflow_id', 'file_id')
const SourceParams = Params('source_id')
const DeliveryParams = Params('delivery_id')
const RunParams = Params('run_id')
const SessionParams = Params('session_id')
const ApiKeyParams = Params('api_key_id')
const UserParams = Params('user_id')

const SearchText = Type.String({ maxLength: SEARCH_MAX_LENGTH, format: 'storable', description: 'What to look for.' })
const OidcText = Type.Optional(Type.String({ maxLength: 4_000, description: 'From the provider.' }))

const PageQuery = Type.Object({ ...PAGE_QUERY }, { title: 'PageQuery', description: 'Query parameters of a list.' })
const WorkflowQuery = Type.Object(
  { ...PAGE_QUERY, ...IDS_QUERY, search: Type.Optional(SearchText) },
  { title: 'WorkflowQuery', description: 'Query parameters of the workflows.' },
)
const SearchQuery = Type.Object(
  { q: SearchText },
  { title: 'SearchQuery', description: 'Query parameters of the search.' },
)
const UsageQuery = Type.Object(
  { ...PERIOD_QUERY, by: Type.Optional(StringEnum(USAGE_GROUPS, { default: 'workflow', description: 'The groups.' })) },
  { title: 'UsageQuery', description: 'Query parameters of the usage.' },
)
const AuditQuery = Type.Object(
  {
    ...PAGE_QUERY,
    ...PERIOD_QUERY,
    actor_id: Type.Optional(Uuid({ description: 'Only events of this user.' })),
    target_id: Type.Optional(Uuid({ description: 'Only events of this thing.' })),
    action: Type.Optional(
      Type.String({
        maxLength: 100,
        format: 'storable',
        description: 'Only this action, or all of a kind: `workflow.`.',
      }),
    ),
  },
  { title: 'AuditQuery', description: 'Query parameters of the audit log.' },
)
const OidcStartQuery = Type.Object(
  { next: OidcText },
  { title: 'OidcStartQuery', description: 'Query parameters of the beginning: the page to show afterwards.' },
)
const OidcCallbackQuery = Type.Object(
  {
    code: OidcText,
    state: OidcText,
    iss: OidcText,
    error: OidcText,
    error_description: OidcText,
    session_state: OidcText,
  },
  { title: 'OidcCallbackQuery', description: 'Query parameters from the provider.' },
)

/** Every operation of the application's API (contract README, "Application"). */
export const APP_OPERATIONS = {
  getSetup: {
    id: 'getSetup',
    ...APP_ROUTES.getSetup,
    who: 'anyone',
    summary: 'Read the state of the sign-in',
    description: 'Read the state of the sign-in.',
    success: { status: 200, schema: SetupStateOut, description: 'The state.' },
  },
  tryCookie: {
    id: 'tryCookie',
    ...APP_ROUTES.tryCookie,
    who: 'anyone',
    summary: 'Try whether the browser keeps cookies',
    description:
      'Sets a cookie of one minute with the attributes of the cookie of a sign-in; the next call says whether it came back. The page asks before it uses a one-time link.',
    success: { status: 200, schema: CookieOut, description: 'Whether this request had the cookie.' },
  },
  setUp: {
    id: 'setUp',
    ...APP_ROUTES.setUp,
    who: 'link',
    summary: 'Create the first owner',
    description:
      'Uses a setup link, creates the account and signs it in. 409 `link_not_usable` if the link was used, revoked or expired.',
    body: SetUpIn,
    trimmed: ['organization_name', 'name', 'email'],
    success: { status: 201, schema: MeOut, description: 'The owner is signed in.' },
  },
  signIn: {
    id: 'signIn',
    ...APP_ROUTES.signIn,
    who: 'anyone',
    summary: 'Sign in',
    description: 'One message for every failure: 401 `sign_in_failed`.',
    body: SignInIn,
    trimmed: ['email'],
    success: { status: 200, schema: MeOut, description: 'The person is signed in.' },
  },
  startOidc: {
    id: 'startOidc',
    ...APP_ROUTES.startOidc,
    who: 'anyone',
    summary: 'Begin a sign-in with OpenID Connect',
    description: 'Redirects to the provider.',
    query: OidcStartQuery,
    success: { status: 302, description: 'To the provider.' },
  },
  finishOidc: {
    id: 'finishOidc',
    ...APP_ROUTES.finishOidc,
    who: 'anyone',
    summary: 'End a sign-in with OpenID Connect',
    description: 'The provider redirects here.',
    query: OidcCallbackQuery,
    success: { status: 302, description: 'To the page.' },
  },
  openLink: {
    id: 'openLink',
    ...APP_ROUTES.openLink,
    who: 'link',
    summary: 'Read what a link is for',
    description: 'Does not use the link.',
    body: OpenLinkIn,
    success: { status: 200, schema: LinkOut, description: 'The link.' },
  },
  acceptLink: {
    id: 'acceptLink',
    ...APP_ROUTES.acceptLink,
    who: 'link',
    summary: 'Accept an invitation, or set a new password or address',
    description:
      'Uses the link and signs the person in. An invitation of an address that has an account, and another address, need the password of the account: 401 `sign_in_failed`.',
    body: AcceptLinkIn,
    trimmed: ['name'],
    success: { status: 200, schema: MeOut, description: 'The person is signed in.' },
  },
  getMe: {
    id: 'getMe',
    ...APP_ROUTES.getMe,
    who: 'signed_in',
    summary: 'Read who is signed in',
    description: 'Read who is signed in.',
    success: { status: 200, schema: MeOut, description: 'The person.' },
  },
  saveMe: {
    id: 'saveMe',
    ...APP_ROUTES.saveMe,
    who: 'signed_in',
    summary: 'Change the name',
    description: 'The email address is changed with a link of the kind `email`.',
    body: SaveMeIn,
    trimmed: ['name', 'email'],
    success: { status: 200, schema: MeOut, description: 'The person.' },
  },
  signOut: {
    id: 'signOut',
    ...APP_ROUTES.signOut,
    who: 'signed_in',
    summary: 'Sign out',
    description: 'Sign out.',
    success: { status: 204, description: 'Done.' },
  },
  changePassword: {
    id: 'changePassword',
    ...APP_ROUTES.changePassword,
    who: 'signed_in',
    summary: 'Change the password',
    description: 'Ends every other sign-in of the account. Needs a confirmation of the last 10 minutes.',
    body: ChangePasswordIn,
    success: { status: 200, schema: MeOut, description: 'The person.' },
  },
  switchOrganization: {
    id: 'switchOrganization',
    ...APP_ROUTES.switchOrganization,
    who: 'signed_in',
    summary: 'Work in another organization',
    description: '401 `unauthorized` if the person was signed out of it after this sign-in.',
    body: SwitchOrganizationIn,
    success: { status: 200, schema: MeOut, description: 'The person.' },
  },
  confirmPassword: {
    id: 'confirmPassword',
    ...APP_ROUTES.confirmPassword,
    who: 'signed_in',
    summary: 'Confirm with the password',
    description: 'For 10 minutes, sensitive changes are allowed.',
    body: ConfirmIn,
    success: { status: 200, schema: MeOut, description: 'The person.' },
  },
  listSignIns: {
    id: 'listSignIns',
    ...APP_ROUTES.listSignIns,
    who: 'signed_in',
    summary: 'List sign-ins',
    description: 'List sign-ins.',
    success: { status: 200, schema: SignInList, description: 'The sign-ins.' },
  },
  endSignIn: {
    id: 'endSignIn',
    ...APP_ROUTES.endSignIn,
    who: 'signed_in',
    summary: 'End a sign-in',
    description: 'End a sign-in.',
    params: SignInParams,
    success: { status: 204, description: 'Done.' },
  },
  getOverview: {
    id: 'getOverview',
    ...APP_ROUTES.getOverview,
    who: 'member',
    summary: 'Read the overview',
    description: 'Read the overview.',
    success: { status: 200, schema: OverviewOut, description: 'The overview.' },
  },
  streamEvents: {
    id: 'streamEvents',
    ...APP_ROUTES.streamEvents,
    who: 'member',
    summary: 'Follow changes',
    description:
      'Server-sent events. The data of each is `{"topics":[…]}`; the page reads again what it shows of them.',
    success: { status: 200, description: 'A stream that ends when the sign-in ends.' },
  },
  search: {
    id: 'search',
    ...APP_ROUTES.search,
    who: 'member',
    summary: 'Search everything',
    description: 'Finds by name, id or request id.',
    query: SearchQuery,
    success: { status: 200, schema: SearchOut, description: 'What was found.' },
  },
  getOrganization: {
    id: 'getOrganization',
    ...APP_ROUTES.getOrganization,
    who: 'member',
    summary: 'Read the organization',
    description: 'Read the organization.',
    success: { status: 200, schema: AppOrganizationOut, description: 'The organization.' },
  },
  listUsers: {
    id: 'listUsers',
    ...APP_ROUTES.listUsers,
    who: 'member',
    summary: 'List users',
    description: 'By email address.',
    query: PageQuery,
    success: { status: 200, schema: AppUserPage, description: 'The users.' },
  },
  getUsage: {
    id: 'getUsage',
    ...APP_ROUTES.getUsage,
    who: 'member',
    summary: 'Read the usage',
    description: 'At most 92 days; the last 7 days by default.',
    query: UsageQuery,
    success: { status: 200, schema: UsageOut, description: 'The usage.' },
  },
  listWorkflows: {
    id: 'listWorkflows',
    ...APP_ROUTES.listWorkflows,
    who: 'member',
    summary: 'List workflows',
    description: 'By creation, oldest first. A member sees `company_wide` workflows and those that list them.',
    query: WorkflowQuery,
    success: { status: 200, schema: WorkflowRowPage, description: 'The workflows.' },
  },
  createWorkflow: {
    id: 'createWorkflow',
    ...APP_ROUTES.createWorkflow,
    who: 'member',
    summary: 'Create a workflow',
    description: 'Repeated with the same id and values, it answers the same. The person is among its users.',
    body: CreateWorkflowIn,
    trimmed: ['name'],
    success: { status: 201, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  getWorkflow: {
    id: 'getWorkflow',
    ...APP_ROUTES.getWorkflow,
    who: 'member',
    summary: 'Read a workflow',
    description: 'Read a workflow.',
    params: WorkflowParams,
    success: { status: 200, schema: WorkflowReadOut, description: 'The workflow.' },
  },
  saveWorkflow: {
    id: 'saveWorkflow',
    ...APP_ROUTES.saveWorkflow,
    who: 'member',
    summary: 'Save a workflow',
    description: 'Save a workflow.',
    params: WorkflowParams,
    body: SaveWorkflowIn,
    trimmed: ['name'],
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  deleteWorkflow: {
    id: 'deleteWorkflow',
    ...APP_ROUTES.deleteWorkflow,
    who: 'member',
    summary: 'Delete a workflow',
    description: 'With its triggers, files and runs. 409 `workflow_busy` while a run has not ended.',
    params: WorkflowParams,
    success: { status: 204, description: 'Done.' },
  },
  duplicateWorkflow: {
    id: 'duplicateWorkflow',
    ...APP_ROUTES.duplicateWorkflow,
    who: 'member',
    summary: 'Duplicate a workflow',
    description: 'Duplicate a workflow.',
    params: WorkflowParams,
    body: DuplicateWorkflowIn,
    trimmed: ['name'],
    success: { status: 201, schema: WorkflowDetailOut, description: 'The copy.' },
  },
  exportWorkflow: {
    id: 'exportWorkflow',
    ...APP_ROUTES.exportWorkflow,
    who: 'member',
    summary: 'Export a workflow as a manifest',
    description: 'With the users that it lists. 409 `manifest_too_large` beyond 10 MiB: use `wf export`.',
    params: WorkflowParams,
    success: { status: 200, schema: ManifestOut, description: 'The manifest.' },
  },
  setWorkflowActive: {
    id: 'setWorkflowActive',
    ...APP_ROUTES.setWorkflowActive,
    who: 'member',
    summary: 'Switch a workflow on or off',
    description: 'Switch a workflow on or off.',
    params: WorkflowParams,
    body: SetActiveIn,
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  saveAutoRun: {
    id: 'saveAutoRun',
    ...APP_ROUTES.saveAutoRun,
    who: 'member',
    summary: 'Save the schedule',
    description: 'Save the schedule.',
    params: WorkflowParams,
    body: SaveAutoRunIn,
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  saveWorkflowUsers: {
    id: 'saveWorkflowUsers',
    ...APP_ROUTES.saveWorkflowUsers,
    who: 'member',
    summary: 'Save the people with access',
    description: 'Save the people with access.',
    params: WorkflowParams,
    body: SaveWorkflowUsersIn,
    bodyLimits: { maxMembers: 6_000 },
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  saveTrigger: {
    id: 'saveTrigger',
    ...APP_ROUTES.saveTrigger,
    who: 'member',
    summary: 'Save a trigger',
    description: 'Save a trigger.',
    params: TriggerParams,
    body: SaveTriggerIn,
    // 100 events and 100 sources with long names, an input message of 200 KB, and filters of any shape.
    bodyLimits: { maxBytes: 512 * 1024, maxMembers: 2_000 },
    trimmed: ['name'],
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  deleteTrigger: {
    id: 'deleteTrigger',
    ...APP_ROUTES.deleteTrigger,
    who: 'member',
    summary: 'Delete a trigger',
    description: 'Delete a trigger.',
    params: TriggerParams,
    query: VersionQuery,
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  getFile: {
    id: 'getFile',
    ...APP_ROUTES.getFile,
    who: 'member',
    summary: 'Read a file',
    description: 'Read a file.',
    params: FileParams,
    success: { status: 200, schema: AppFileOut, description: 'The file.' },
  },
  saveFile: {
    id: 'saveFile',
    ...APP_ROUTES.saveFile,
    who: 'member',
    summary: 'Save a file',
    description: 'Save a file.',
    params: FileParams,
    body: SaveFileIn,
    // 1 MiB in which every character takes two bytes as JSON.
    bodyLimits: { maxBytes: 2.5 * 1024 * 1024 },
    trimmed: ['name'],
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  deleteFile: {
    id: 'deleteFile',
    ...APP_ROUTES.deleteFile,
    who: 'member',
    summary: 'Delete a file',
    description: 'Delete a file.',
    params: FileParams,
    query: VersionQuery,
    success: { status: 200, schema: WorkflowDetailOut, description: 'The workflow.' },
  },
  getReadiness: {
    id: 'getReadiness',
    ...APP_ROUTES.getReadiness,
    who: 'member',
    summary: 'Read whether a workflow can start',
    description: 'Read whether a workflow can start.',
    params: WorkflowParams,
    success: { status: 200, schema: ReadinessOut, description: 'The rules and the named sources.' },
  },
  startWorkflow: {
    id: 'startWorkflow',
    ...APP_ROUTES.startWorkflow,
    who: 'member',
    summary: 'Start a workflow',
    description: 'By the rules of the public API. Repeated with the same id, it starts nothing and answers the same.',
    params: WorkflowParams,
    body: AppStartIn,
    trimmed: ['context'],
    success: { status: 202, schema: AppStartOut, description: 'Accepted.' },
  },
  listWebhookSources: {
    id: 'listWebhookSources',
    ...APP_ROUTES.listWebhookSources,
    who: 'member',
    summary: 'List webhook sources',
    description: 'List webhook sources.',
    success: { status: 200, schema: AppWebhookSourceList, description: 'The webhook sources.' },
  },
  getWebhookSource: {
    id: 'getWebhookSource',
    ...APP_ROUTES.getWebhookSource,
    who: 'member',
    summary: 'Read a webhook source',
    description: 'Read a webhook source.',
    params: SourceParams,
    success: { status: 200, schema: AppWebhookSourceOut, description: 'The webhook source.' },
  },
  saveWebhookSource: {
    id: 'saveWebhookSource',
    ...APP_ROUTES.saveWebhookSource,
    who: 'admin',
    summary: 'Verify and save a webhook source',
    description:
      'One verification request, at most 10 seconds; nothing is saved unless the endpoint confirms (422 `verification_failed`).',
    params: SourceParams,
    body: SaveWebhookSourceIn,
    bodyLimits: { maxMembers: PAYLOAD_MAX_VALUES + APP_BODY_MAX_MEMBERS },
    trimmed: ['name'],
    success: { status: 200, schema: AppWebhookSourceOut, description: 'The webhook source.' },
  },
  saveWebhookSourceSettings: {
    id: 'saveWebhookSourceSettings',
    ...APP_ROUTES.saveWebhookSourceSettings,
    who: 'admin',
    summary: "Save a webhook source's settings",
    description:
      'The settings that the endpoint does not confirm. No verification request, so also while the endpoint is down.',
    params: SourceParams,
    body: SaveWebhookSourceSettingsIn,
    success: { status: 200, schema: AppWebhookSourceOut, description: 'The webhook source.' },
  },
  deleteWebhookSource: {
    id: 'deleteWebhookSource',
    ...APP_ROUTES.deleteWebhookSource,
    who: 'admin',
    summary: 'Delete a webhook source',
    description: 'Its log stays readable.',
    params: SourceParams,
    success: { status: 204, description: 'Done.' },
  },
  testWebhookSource: {
    id: 'testWebhookSource',
    ...APP_ROUTES.testWebhookSource,
    who: 'admin',
    summary: 'Test a webhook source',
    description: 'Sends the verification request once.',
    params: SourceParams,
    success: { status: 200, schema: AppDeliveryOut, description: 'The outcome.' },
  },
  listDeliveries: {
    id: 'listDeliveries',
    ...APP_ROUTES.listDeliveries,
    who: 'member',
    summary: 'Read the log of a webhook source',
    description: 'Read the log of a webhook source.',
    params: SourceParams,
    query: AppDeliveryQuery,
    success: { status: 200, schema: AppDeliveryPage, description: 'One page, newest first.' },
  },
  getDelivery: {
    id: 'getDelivery',
    ...APP_ROUTES.getDelivery,
    who: 'member',
    summary: 'Read a delivery',
    description: 'Read a delivery.',
    params: DeliveryParams,
    success: { status: 200, schema: DeliveryDetailOut, description: 'The delivery.' },
  },
  resendDelivery: {
    id: 'resendDelivery',
    ...APP_ROUTES.resendDelivery,
    who: 'member',
    summary: 'Send a delivery again',
    description:
      'As a new delivery with the id of the path, signed with the current secret. Answers when its outcome is known. Repeated, it sends nothing and answers the same.',
    params: DeliveryParams,
    body: ResendIn,
    success: { status: 200, schema: DeliveryDetailOut, description: 'The new delivery.' },
  },
  approveDelivery: {
    id: 'approveDelivery',
    ...APP_ROUTES.approveDelivery,
    who: 'admin',
    summary: 'Approve a payload',
    description: 'The run continues and sends exactly this payload. 409 `not_waiting` if it was decided or expired.',
    params: DeliveryParams,
    success: { status: 200, schema: RunDetailOut, description: 'The run.' },
  },
  declineDelivery: {
    id: 'declineDelivery',
    ...APP_ROUTES.declineDelivery,
    who: 'admin',
    summary: 'Decline a payload',
    description: 'It is never sent, and the run continues without it. 409 `not_waiting` if it was decided or expired.',
    params: DeliveryParams,
    body: DeclineIn,
    trimmed: ['reason'],
    success: { status: 200, schema: RunDetailOut, description: 'The run.' },
  },
  listRuns: {
    id: 'listRuns',
    ...APP_ROUTES.listRuns,
    who: 'member',
    summary: 'List runs',
    description: 'List runs.',
    query: RunListQuery,
    success: { status: 200, schema: RunPage, description: 'One page, newest first.' },
  },
  getRun: {
    id: 'getRun',
    ...APP_ROUTES.getRun,
    who: 'member',
    summary: 'Read a run',
    description: 'Read a run.',
    params: RunParams,
    success: { status: 200, schema: RunDetailOut, description: 'The run.' },
  },
  getRunPrompts: {
    id: 'getRunPrompts',
    ...APP_ROUTES.getRunPrompts,
    who: 'admin',
    summary: 'Read what a model was asked',
    description: 'The system text, tools and messages of each request of the run. Empty for a run without a model.',
    params: RunParams,
    success: { status: 200, schema: RunPromptsOut, description: 'The prompts.' },
  },
  getRulesDraft: {
    id: 'getRulesDraft',
    ...APP_ROUTES.getRulesDraft,
    who: 'member',
    summary: 'Draft the rules that a run needs',
    description:
      'For a run that failed with `needs_a_model`, `payload_incomplete`, `rules_needed` or `no_destination`; 404 for any other. Saves nothing.',
    params: RunParams,
    success: { status: 200, schema: RulesDraftOut, description: 'The draft.' },
  },
  listSessions: {
    id: 'listSessions',
    ...APP_ROUTES.listSessions,
    who: 'member',
    summary: 'List sessions',
    description: 'List sessions.',
    query: SessionListQuery,
    success: { status: 200, schema: SessionPage, description: 'One page, newest first.' },
  },
  createSession: {
    id: 'createSession',
    ...APP_ROUTES.createSession,
    who: 'member',
    summary: 'Open a session',
    description: 'Open a session.',
    body: CreateSessionIn,
    success: { status: 201, schema: SessionDetailOut, description: 'The session.' },
  },
  getSession: {
    id: 'getSession',
    ...APP_ROUTES.getSession,
    who: 'member',
    summary: 'Read a session',
    description: 'Read a session.',
    params: SessionParams,
    success: { status: 200, schema: SessionDetailOut, description: 'The session.' },
  },
  closeSession: {
    id: 'closeSession',
    ...APP_ROUTES.closeSession,
    who: 'member',
    summary: 'Close a session',
    description: 'Accepted starts still run.',
    params: SessionParams,
    success: { status: 200, schema: SessionDetailOut, description: 'The session.' },
  },
  listApiKeys: {
    id: 'listApiKeys',
    ...APP_ROUTES.listApiKeys,
    who: 'admin',
    summary: 'List API keys',
    description: 'Newest first, revoked ones included.',
    query: PageQuery,
    success: { status: 200, schema: ApiKeyPage, description: 'The keys.' },
  },
  createApiKey: {
    id: 'createApiKey',
    ...APP_ROUTES.createApiKey,
    who: 'admin',
    summary: 'Create an API key',
    description: 'The answer holds the key, once.',
    body: CreateApiKeyIn,
    trimmed: ['name'],
    success: { status: 201, schema: NewApiKeyOut, description: 'The key.' },
  },
  revokeApiKey: {
    id: 'revokeApiKey',
    ...APP_ROUTES.revokeApiKey,
    who: 'admin',
    summary: 'Revoke an API key',
    description: 'It stops working within 5 seconds.',
    params: ApiKeyParams,
    success: { status: 204, description: 'Done.' },
  },
  createUser: {
    id: 'createUser',
    ...APP_ROUTES.createUser,
    who: 'admin',
    summary: 'Add a user',
    description: 'Only an owner makes an owner.',
    body: CreateUserIn,
    trimmed: ['email', 'first_name', 'last_name'],
    success: { status: 201, schema: AppUserOut, description: 'The user.' },
  },
  saveUser: {
    id: 'saveUser',
    ...APP_ROUTES.saveUser,
    who: 'admin',
    summary: 'Change a user',
    description: 'To or from owner: only an owner, with a confirmation. 409 `last_owner` if none would be left.',
    params: UserParams,
    body: SaveUserIn,
    trimmed: ['first_name', 'last_name'],
    success: { status: 200, schema: AppUserOut, description: 'The user.' },
  },
  deleteUser: {
    id: 'deleteUser',
    ...APP_ROUTES.deleteUser,
    who: 'admin',
    summary: 'Remove a user',
    description: 'Remove a user.',
    params: UserParams,
    success: { status: 204, description: 'Done.' },
  },
  createUserLink: {
    id: 'createUserLink',
    ...APP_ROUTES.createUserLink,
    who: 'admin',
    summary: 'Make a link for a user',
    description:
      'An invitation (72 hours), a reset link (1 hour), or a link with which the person gets another email address (72 hours). The last two need a confirmation of the last 10 minutes.',
    params: UserParams,
    body: CreateUserLinkIn,
    trimmed: ['email'],
    success: { status: 201, schema: UserLinkOut, description: 'The link.' },
  },
  signUserOut: {
    id: 'signUserOut',
    ...APP_ROUTES.signUserOut,
    who: 'admin',
    summary: 'Sign a user out everywhere',
    description: 'Sign a user out everywhere.',
    params: UserParams,
    success: { status: 204, description: 'Done.' },
  },
  listAuditEvents: {
    id: 'listAuditEvents',
    ...APP_ROUTES.listAuditEvents,
    who: 'admin',
    summary: 'Read the audit log',
    description: 'Read the audit log.',
    query: AuditQuery,
    success: { status: 200, schema: AuditEventPage, description: 'One page, newest first.' },
  },
  exportManifest: {
    id: 'exportManifest',
    ...APP_ROUTES.exportManifest,
    who: 'admin',
    summary: 'Export the organization as a manifest',
    description:
      'Users, webhook sources and workflows, without keys and secrets. 409 `manifest_too_large` beyond 10 MiB: use `wf export`.',
    success: { status: 200, schema: ManifestOut, description: 'The manifest.' },
  },
  saveOrganization: {
    id: 'saveOrganization',
    ...APP_ROUTES.saveOrganization,
    who: 'admin',
    summary: 'Rename the organization',
    description: 'Rename the organization.',
    body: SaveOrganizationIn,
    trimmed: ['name'],
    success: { status: 200, schema: AppOrganizationOut, description: 'The organization.' },
  },
  deleteOrganization: {
    id: 'deleteOrganization',
    ...APP_ROUTES.deleteOrganization,
    who: 'owner',
    summary: 'Delete the organization',
    description: 'With everything in it. Needs a confirmation of the last 10 minutes.',
    body: DeleteOrganizationIn,
    success: { status: 204, description: 'Done.' },
  },
} as const satisfies Record<keyof typeof APP_ROUTES, AppOperation>

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

/** What an operation answers; undefined without a body. */
export type AppAnswer<Id extends AppOperationId> = SchemaOf<AppOperations[Id]['success'], 'schema'>

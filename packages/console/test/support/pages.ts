import type { Filled } from './fill.ts'

/** A page of the application as tests and screenshots visit it. */
export interface PageToVisit {
  readonly name: string
  /** Its component in the router. */
  readonly component: string
  readonly path: (filled: Filled) => string
  /** Exists only for something that `fill` creates. */
  readonly needsFilled?: boolean
  readonly isPublic?: boolean
}

const page = (name: string, component: string, path: string): PageToVisit => ({ name, component, path: () => path })
const filledPage = (name: string, component: string, path: PageToVisit['path']): PageToVisit => ({
  name,
  component,
  path,
  needsFilled: true,
})

/** For pages that need nothing of it. */
export const NOTHING_FILLED: Filled = {
  sourceId: '',
  lookupId: '',
  workflowId: '',
  fileId: '',
  userId: '',
  deliveryId: '',
  runId: '',
  sessionId: '',
  resendJobId: '',
}

/** Every route of the page. A test compares it with the router. */
export const PAGES: readonly PageToVisit[] = [
  { ...page('setup', 'SetUpPage', '/setup#no-such-token'), isPublic: true },
  { ...page('sign-in', 'SignInPage', '/sign-in'), isPublic: true },
  { ...page('link', 'LinkPage', '/link#no-such-token'), isPublic: true },
  page('overview', 'OverviewPage', '/'),
  page('workflows', 'WorkflowsPage', '/workflows'),
  page('workflow-new', 'NewWorkflowPage', '/workflows/new'),
  filledPage('workflow', 'WorkflowEditPage', ({ workflowId }) => `/workflows/${workflowId}`),
  filledPage('workflow-triggers', 'WorkflowTriggersPage', ({ workflowId }) => `/workflows/${workflowId}/triggers`),
  filledPage('workflow-people', 'WorkflowPeoplePage', ({ workflowId }) => `/workflows/${workflowId}/people`),
  filledPage('workflow-files', 'WorkflowFilesPage', ({ workflowId }) => `/workflows/${workflowId}/files`),
  filledPage('workflow-schedule', 'WorkflowSchedulePage', ({ workflowId }) => `/workflows/${workflowId}/schedule`),
  filledPage('workflow-agent', 'WorkflowAgentPage', ({ workflowId }) => `/workflows/${workflowId}/agent`),
  filledPage('workflow-runs', 'WorkflowRunsPage', ({ workflowId }) => `/workflows/${workflowId}/runs`),
  filledPage('workflow-history', 'WorkflowHistoryPage', ({ workflowId }) => `/workflows/${workflowId}/history`),
  filledPage('workflow-cases', 'WorkflowCasesPage', ({ workflowId }) => `/workflows/${workflowId}/cases`),
  filledPage('workflow-try', 'WorkflowTryPage', ({ workflowId }) => `/workflows/${workflowId}/try`),
  page('sources', 'SourcesPage', '/sources'),
  page('source-new', 'NewSourcePage', '/sources/new'),
  filledPage('source', 'SourcePage', ({ sourceId }) => `/sources/${sourceId}`),
  page('lookups', 'LookupsPage', '/lookups'),
  page('lookup-new', 'NewLookupPage', '/lookups/new'),
  filledPage('lookup', 'LookupPage', ({ lookupId }) => `/lookups/${lookupId}`),
  filledPage('source-logs', 'SourceLogPage', ({ sourceId }) => `/sources/${sourceId}/logs`),
  page('agents', 'AgentsPage', '/agents'),
  filledPage(
    'source-logs-delivery',
    'DeliveryDrawer',
    ({ sourceId, deliveryId }) => `/sources/${sourceId}/logs/${deliveryId}`,
  ),
  filledPage('delivery', 'DeliveryPage', ({ deliveryId }) => `/deliveries/${deliveryId}`),
  page('deliveries', 'DeliveriesPage', '/deliveries'),
  filledPage('resend', 'ResendJobPage', ({ resendJobId }) => `/resends/${resendJobId}`),
  page('runs', 'RunsPage', '/runs'),
  filledPage('run', 'RunPage', ({ runId }) => `/runs/${runId}`),
  page('approvals', 'ApprovalsPage', '/approvals'),
  page('sessions', 'SessionsPage', '/sessions'),
  filledPage('session', 'SessionPage', ({ sessionId }) => `/sessions/${sessionId}`),
  page('usage', 'UsagePage', '/usage'),
  page('keys', 'KeysPage', '/keys'),
  page('people', 'PeoplePage', '/people'),
  page('organization', 'OrganizationPage', '/organization'),
  page('audit', 'AuditPage', '/audit'),
  page('account', 'AccountPage', '/account'),
  page('not-found', 'NotFoundPage', '/no-such-page'),
]

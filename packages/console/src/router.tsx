import {
  type AnyRoute,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  type RouteComponent,
  useRouter,
} from '@tanstack/react-router'
import { AppError, call, queryClient, queryFor } from './api/index.ts'
import { EmptyState, ErrorState, Loading, Page } from './components/page.tsx'
import { logLink } from './components/thing-link.tsx'
import { AppLayout } from './layout/app-layout.tsx'

/** The search parameters of every page are texts: filters and the place to return to. */
type Search = Record<string, string | undefined>

const root = createRootRoute({
  validateSearch: (search: Record<string, unknown>): Search => search as Search,
})

/** Pages of a person who is signed in. The others are sent to the sign-in and come back from it. */
const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  component: AppLayout,
  errorComponent: ({ error }) => (
    <main>
      <LoadFailed error={error} />
    </main>
  ),
  beforeLoad: async ({ location, search: { organization, ...search } }) => {
    try {
      const me = await queryClient.ensureQueryData(queryFor('getMe'))
      // A link of an email: the person may have been in another one since.
      if (organization === undefined) return
      if (organization !== me.organization.id && me.organizations.some(({ id }) => id === organization)) {
        const switched = await call('switchOrganization', { body: { organization_id: organization } })
        queryClient.clear()
        queryClient.setQueryData(['getMe', {}], switched)
      }
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } })
    }
    throw redirect({ to: location.pathname, search, replace: true })
  },
})

/**
 * Loads the code of an area. After a failed import the router reloads the page, which finds the code of a new release.
 * Without a connection the browser would show its own error instead: then the import fails as every other request does.
 */
function area<Module>(load: () => Promise<Module>): () => Promise<Module> {
  return async () => {
    try {
      return await load()
    } catch (error) {
      await call('getMe', {}).catch((reason: unknown) => {
        if (reason instanceof AppError && reason.status === 0) throw reason
      })
      throw error
    }
  }
}

// One chunk for each area.
const overview = area(() => import('./pages/overview/index.tsx'))
const workflows = area(() => import('./pages/workflows/index.tsx'))
const cases = area(() => import('./pages/cases/index.tsx'))
const sources = area(() => import('./pages/sources/index.tsx'))
const lookups = area(() => import('./pages/lookups/index.tsx'))
const agents = area(() => import('./pages/agents/index.tsx'))
const deliveries = area(() => import('./pages/deliveries/index.tsx'))
const runs = area(() => import('./pages/runs/index.tsx'))
const sessions = area(() => import('./pages/sessions/index.tsx'))
const usage = area(() => import('./pages/usage/index.tsx'))
const signIn = area(() => import('./pages/sign-in/index.tsx'))
const account = area(() => import('./pages/account/index.tsx'))
const admin = area(() => import('./pages/admin/index.tsx'))

/** A page below another route. Its parameters have the names of those of the operation that reads it. */
function page<Parent extends AnyRoute, const Path extends string>(
  parent: Parent,
  path: Path,
  component: RouteComponent,
) {
  return createRoute({ getParentRoute: () => parent, path, component })
}
const workflow = page(app, '/workflows/$workflow_id', lazyRouteComponent(workflows, 'WorkflowLayout'))
/** The log of a source: its deliveries among all, with the same filters. */
const sourceLog = createRoute({
  getParentRoute: () => app,
  path: '/sources/$source_id/logs/{-$delivery_id}',
  beforeLoad: ({ params, search }) => {
    throw redirect({
      to: '/deliveries',
      search: { ...search, ...logLink(params.source_id, params.delivery_id).search },
    })
  },
})

const routes = root.addChildren([
  page(root, '/setup', lazyRouteComponent(signIn, 'SetUpPage')),
  page(root, '/sign-in', lazyRouteComponent(signIn, 'SignInPage')),
  page(root, '/link', lazyRouteComponent(signIn, 'LinkPage')),
  app.addChildren([
    page(app, '/', lazyRouteComponent(overview, 'OverviewPage')),
    page(app, '/workflows', lazyRouteComponent(workflows, 'WorkflowsPage')),
    page(app, '/workflows/new', lazyRouteComponent(workflows, 'NewWorkflowPage')),
    workflow.addChildren([
      page(workflow, '/', lazyRouteComponent(workflows, 'WorkflowEditPage')),
      page(workflow, '/triggers', lazyRouteComponent(workflows, 'WorkflowTriggersPage')),
      page(workflow, '/people', lazyRouteComponent(workflows, 'WorkflowPeoplePage')),
      page(workflow, '/files', lazyRouteComponent(workflows, 'WorkflowFilesPage')),
      page(workflow, '/schedule', lazyRouteComponent(workflows, 'WorkflowSchedulePage')),
      page(workflow, '/agent', lazyRouteComponent(workflows, 'WorkflowAgentPage')),
      page(workflow, '/runs', lazyRouteComponent(workflows, 'WorkflowRunsPage')),
      page(workflow, '/history', lazyRouteComponent(workflows, 'WorkflowHistoryPage')),
      page(workflow, '/cases', lazyRouteComponent(cases, 'WorkflowCasesPage')),
      page(workflow, '/try', lazyRouteComponent(workflows, 'WorkflowTryPage')),
    ]),
    page(app, '/sources', lazyRouteComponent(sources, 'SourcesPage')),
    page(app, '/sources/new', lazyRouteComponent(sources, 'NewSourcePage')),
    page(app, '/sources/$source_id', lazyRouteComponent(sources, 'SourcePage')),
    page(app, '/lookups', lazyRouteComponent(lookups, 'LookupsPage')),
    page(app, '/lookups/new', lazyRouteComponent(lookups, 'NewLookupPage')),
    page(app, '/lookups/$lookup_id', lazyRouteComponent(lookups, 'LookupPage')),
    page(app, '/agents', lazyRouteComponent(agents, 'AgentsPage')),
    sourceLog,
    page(app, '/deliveries', lazyRouteComponent(deliveries, 'DeliveriesPage')),
    page(app, '/deliveries/$delivery_id', lazyRouteComponent(deliveries, 'DeliveryPage')),
    page(app, '/resends/$resend_job_id', lazyRouteComponent(deliveries, 'ResendJobPage')),
    page(app, '/approvals', lazyRouteComponent(runs, 'ApprovalsPage')),
    page(app, '/runs', lazyRouteComponent(runs, 'RunsPage')),
    page(app, '/runs/$run_id', lazyRouteComponent(runs, 'RunPage')),
    page(app, '/sessions', lazyRouteComponent(sessions, 'SessionsPage')),
    page(app, '/sessions/$session_id', lazyRouteComponent(sessions, 'SessionPage')),
    page(app, '/usage', lazyRouteComponent(usage, 'UsagePage')),
    page(app, '/keys', lazyRouteComponent(admin, 'KeysPage')),
    page(app, '/people', lazyRouteComponent(admin, 'PeoplePage')),
    page(app, '/organization', lazyRouteComponent(admin, 'OrganizationPage')),
    page(app, '/audit', lazyRouteComponent(admin, 'AuditPage')),
    page(app, '/account', lazyRouteComponent(account, 'AccountPage')),
    page(app, '/$', NotFoundPage),
  ]),
])

/**
 * Takes the place of the layout when the signed-in person cannot be read, and of a page whose code cannot be read or
 * that throws.
 */
function LoadFailed({ error }: { error: unknown }) {
  const router = useRouter()
  return <ErrorState error={error} onRetry={() => router.invalidate()} isPage />
}

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: LoadFailed,
  // The default would turn a filter such as `123` into a number.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const entries = Object.entries(search as Search).filter((entry): entry is [string, string] => Boolean(entry[1]))
    return entries.length > 0 ? `?${new URLSearchParams(entries)}` : ''
  },
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

function NotFoundPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon="search"
        title="There is no page at this address"
        text="The link may be old. Search (⌘K or Ctrl-K) finds pages, workflows, webhook sources and complete ids."
        action={{ label: 'Overview', link: { to: '/' } }}
      />
    </Page>
  )
}

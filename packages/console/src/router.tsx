import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  redirect,
  type RouteComponent,
  useRouter,
} from '@tanstack/react-router'
import { AppError } from './api/call.ts'
import { queryClient, read } from './api/queries.ts'
import { ErrorState, Loading } from './components/states.tsx'
import { AppLayout } from './layout/app-layout.tsx'
import { NotFoundPage } from './layout/not-found-page.tsx'

/** The search parameters of every page are texts: filters and the place to return to. */
type Search = Record<string, string | undefined>

const root = createRootRoute({
  validateSearch: (search: Record<string, unknown>): Search => search as Search,
  notFoundComponent: NotFoundPage,
})

/** Pages of a person who is signed in. The others are sent to the sign-in and come back from it. */
const app = createRoute({
  getParentRoute: () => root,
  id: 'app',
  component: AppLayout,
  beforeLoad: async ({ location }) => {
    try {
      await queryClient.ensureQueryData(read('getMe'))
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } })
    }
  },
})

// One chunk for each area.
const overview = () => import('./pages/overview/index.tsx')
const workflows = () => import('./pages/workflows/index.tsx')
const sources = () => import('./pages/sources/index.tsx')
const deliveries = () => import('./pages/deliveries/index.tsx')
const runs = () => import('./pages/runs/index.tsx')
const sessions = () => import('./pages/sessions/index.tsx')
const usage = () => import('./pages/usage/index.tsx')
const signIn = () => import('./pages/sign-in/index.tsx')
const account = () => import('./pages/account/index.tsx')
const admin = () => import('./pages/admin/index.tsx')

/** A page for people who are not signed in. */
function publicPage<const Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => root, path, component })
}
/** A page of the application. */
function page<const Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => app, path, component })
}
const workflow = page('/workflows/$workflowId', lazyRouteComponent(workflows, 'WorkflowLayout'))
/** A tab of a workflow's page. */
function tab<const Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => workflow, path, component })
}
const sourceLog = page('/sources/$sourceId/logs', lazyRouteComponent(deliveries, 'SourceLogPage'))
const drawer = createRoute({
  getParentRoute: () => sourceLog,
  path: '/$deliveryId',
  component: lazyRouteComponent(deliveries, 'DeliveryDrawer'),
})

const routes = root.addChildren([
  publicPage('/setup', lazyRouteComponent(signIn, 'SetUpPage')),
  publicPage('/sign-in', lazyRouteComponent(signIn, 'SignInPage')),
  publicPage('/link', lazyRouteComponent(signIn, 'LinkPage')),
  app.addChildren([
    page('/', lazyRouteComponent(overview, 'OverviewPage')),
    page('/workflows', lazyRouteComponent(workflows, 'WorkflowsPage')),
    page('/workflows/new', lazyRouteComponent(workflows, 'NewWorkflowPage')),
    workflow.addChildren([
      tab('/', lazyRouteComponent(workflows, 'WorkflowEditPage')),
      tab('/triggers', lazyRouteComponent(workflows, 'WorkflowTriggersPage')),
      tab('/people', lazyRouteComponent(workflows, 'WorkflowPeoplePage')),
      tab('/files', lazyRouteComponent(workflows, 'WorkflowFilesPage')),
      tab('/schedule', lazyRouteComponent(workflows, 'WorkflowSchedulePage')),
      tab('/runs', lazyRouteComponent(workflows, 'WorkflowRunsPage')),
      tab('/try', lazyRouteComponent(workflows, 'WorkflowTryPage')),
    ]),
    page('/sources', lazyRouteComponent(sources, 'SourcesPage')),
    page('/sources/new', lazyRouteComponent(sources, 'NewSourcePage')),
    page('/sources/$sourceId', lazyRouteComponent(sources, 'SourcePage')),
    sourceLog.addChildren([drawer]),
    page('/deliveries/$deliveryId', lazyRouteComponent(deliveries, 'DeliveryPage')),
    page('/runs', lazyRouteComponent(runs, 'RunsPage')),
    page('/runs/$runId', lazyRouteComponent(runs, 'RunPage')),
    page('/sessions', lazyRouteComponent(sessions, 'SessionsPage')),
    page('/sessions/$sessionId', lazyRouteComponent(sessions, 'SessionPage')),
    page('/usage', lazyRouteComponent(usage, 'UsagePage')),
    page('/keys', lazyRouteComponent(admin, 'KeysPage')),
    page('/people', lazyRouteComponent(admin, 'PeoplePage')),
    page('/organization', lazyRouteComponent(admin, 'OrganizationPage')),
    page('/audit', lazyRouteComponent(admin, 'AuditPage')),
    page('/account', lazyRouteComponent(account, 'AccountPage')),
  ]),
])

/** Takes the place of the whole page when the signed-in person cannot be read, or a page throws. */
function LoadFailed({ error }: ErrorComponentProps) {
  const router = useRouter()
  return (
    <main>
      <ErrorState error={error} onRetry={() => router.invalidate()} isPage />
    </main>
  )
}

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: LoadFailed,
  defaultNotFoundComponent: NotFoundPage,
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

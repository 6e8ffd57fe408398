import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
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

const workflow = createRoute({
  getParentRoute: () => app,
  path: '/workflows/$workflowId',
  component: lazyRouteComponent(workflows, 'WorkflowLayout'),
})
const sourceLog = createRoute({
  getParentRoute: () => app,
  path: '/sources/$sourceId/logs',
  component: lazyRouteComponent(deliveries, 'SourceLogPage'),
})

const routes = root.addChildren([
  createRoute({
    getParentRoute: () => root,
    path: '/setup',
    component: lazyRouteComponent(signIn, 'SetUpPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/sign-in',
    component: lazyRouteComponent(signIn, 'SignInPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/link',
    component: lazyRouteComponent(signIn, 'LinkPage'),
  }),
  app.addChildren([
    createRoute({
      getParentRoute: () => app,
      path: '/',
      component: lazyRouteComponent(overview, 'OverviewPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/workflows',
      component: lazyRouteComponent(workflows, 'WorkflowsPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/workflows/new',
      component: lazyRouteComponent(workflows, 'NewWorkflowPage'),
    }),
    workflow.addChildren([
      createRoute({
        getParentRoute: () => workflow,
        path: '/',
        component: lazyRouteComponent(workflows, 'WorkflowEditPage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/triggers',
        component: lazyRouteComponent(workflows, 'WorkflowTriggersPage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/people',
        component: lazyRouteComponent(workflows, 'WorkflowPeoplePage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/files',
        component: lazyRouteComponent(workflows, 'WorkflowFilesPage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/schedule',
        component: lazyRouteComponent(workflows, 'WorkflowSchedulePage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/runs',
        component: lazyRouteComponent(workflows, 'WorkflowRunsPage'),
      }),
      createRoute({
        getParentRoute: () => workflow,
        path: '/try',
        component: lazyRouteComponent(workflows, 'WorkflowTryPage'),
      }),
    ]),
    createRoute({
      getParentRoute: () => app,
      path: '/sources',
      component: lazyRouteComponent(sources, 'SourcesPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/sources/new',
      component: lazyRouteComponent(sources, 'NewSourcePage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/sources/$sourceId',
      component: lazyRouteComponent(sources, 'SourcePage'),
    }),
    sourceLog.addChildren([
      createRoute({
        getParentRoute: () => sourceLog,
        path: '/$deliveryId',
        component: lazyRouteComponent(deliveries, 'DeliveryDrawer'),
      }),
    ]),
    createRoute({
      getParentRoute: () => app,
      path: '/deliveries/$deliveryId',
      component: lazyRouteComponent(deliveries, 'DeliveryPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/runs',
      component: lazyRouteComponent(runs, 'RunsPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/runs/$runId',
      component: lazyRouteComponent(runs, 'RunPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/sessions',
      component: lazyRouteComponent(sessions, 'SessionsPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/sessions/$sessionId',
      component: lazyRouteComponent(sessions, 'SessionPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/usage',
      component: lazyRouteComponent(usage, 'UsagePage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/keys',
      component: lazyRouteComponent(admin, 'KeysPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/people',
      component: lazyRouteComponent(admin, 'PeoplePage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/organization',
      component: lazyRouteComponent(admin, 'OrganizationPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/audit',
      component: lazyRouteComponent(admin, 'AuditPage'),
    }),
    createRoute({
      getParentRoute: () => app,
      path: '/account',
      component: lazyRouteComponent(account, 'AccountPage'),
    }),
  ]),
])

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ({ error, reset }) => (
    <main>
      <ErrorState error={error} onRetry={reset} />
    </main>
  ),
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

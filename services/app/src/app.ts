import type { AppOperation, AppOperationId } from '@workflow-service/contract'
import { APP_OPERATIONS, bodyLimitsOf, describeAppApi } from '@workflow-service/contract/app'
import {
  EditRefused,
  isDatabaseUnavailable,
  RoleLostError,
  QuotaExceededError,
  recordAuditEvent,
} from '@workflow-service/database'
import {
  ApiError,
  assignRequestId,
  createPublicApp,
  handleErrors,
  handleNotFound,
  logRequests,
  type OperationHandlers,
  type OperationRequest,
  type OperationResponse,
  sendHealthz,
  serveOpenApi,
  serveOperations,
  traceRequests,
} from '@workflow-service/service-kit'
import { createLocalLimiter, type Quota } from '@workflow-service/service-kit/rate-limit'
import type { ErrorRequestHandler, Express, RequestHandler } from 'express'
import type { AppServiceContext } from './app-service-context.ts'
import { authorize } from './auth/authorize.ts'
import type { Principal, Visitor } from './auth/principal.ts'
import { type AppHandlers, ResponseWithHeaders } from './routes/app-handlers.ts'
import { dataHandlers, dataRules } from './routes/data/index.ts'
import { meHandlers } from './routes/identity/me.ts'
import { oidcHandlers } from './routes/identity/oidc.ts'
import { organizationHandlers } from './routes/identity/organization.ts'
import { signInHandlers } from './routes/identity/sign-in.ts'
import { userHandlers } from './routes/identity/users.ts'
import { editRefused } from './routes/workflows/edit-workflow.ts'
import { workflowsHandlers, workflowsRules } from './routes/workflows/index.ts'
import { keyOf } from './operation-shares.ts'
import { quotaExceeded, toLimits } from './quotas.ts'
import { requireHost } from './require-host.ts'
import { securityHeaders } from './security-headers.ts'
import { servePage } from './serve-page.ts'

const MAX_REQUESTS_IN_FLIGHT = 500
/** Of a network whose callers are not signed in. */
const MAX_REQUESTS_OF_NETWORK = 50
/** A resend answers when its outcome is known, after 50 s at most. */
const HANDLER_TIMEOUT_MS = 65_000

/** Creates the application: its API under `/app/`, and the page. */
export function createApp(ctx: AppServiceContext): Express {
  const app = createPublicApp(ctx.config)
  app.use(assignRequestId)
  app.use(
    logRequests({
      logger: ctx.logger,
      // Files of the page.
      levelOf: ({ originalUrl }, { statusCode }) =>
        originalUrl.startsWith('/app/') || statusCode >= 400 ? 'info' : 'debug',
      fieldsOf: ({ locals: { person } }) => ({ organization_id: person?.organizationId, user_id: person?.userId }),
    }),
  )
  app.use(securityHeaders(ctx.config.appUrl))
  // Before the check of the host: a probe asks the address of the container.
  app.get('/healthz', sendHealthz)
  app.use(requireHost(ctx.config.appUrl))
  app.get('/app/openapi.json', serveOpenApi(describeAppApi, ctx.config.appUrl))
  if (ctx.tracing.isOn) app.use('/app', traceRequests(ctx.tracing, APP_OPERATIONS))
  app.use(serveApi(ctx))
  app.use(servePage(ctx.config.consoleFolder))
  app.use(handleNotFound)
  app.use(auditRefusals(ctx))
  app.use(handleErrors(ctx.logger, isDatabaseUnavailable))
  return app
}

function serveApi(ctx: AppServiceContext): RequestHandler {
  const serve = serveOperations({
    operations: APP_OPERATIONS,
    authorize: authorize(ctx),
    handlers: createHandlers(ctx),
    shares: ctx.shares,
    rules: { ...workflowsRules, ...dataRules },
    bodyLimits: bodyLimitsOf,
    slots: {
      total: MAX_REQUESTS_IN_FLIGHT,
      perKey: MAX_REQUESTS_IN_FLIGHT / 2,
      keyOf,
      strangers: { includes: (caller) => !('organizationId' in caller), perKey: MAX_REQUESTS_OF_NETWORK },
      metrics: ctx.metrics,
    },
    handlerTimeoutMs: HANDLER_TIMEOUT_MS,
  })
  return (req, res, next) => (req.path.startsWith('/app/') ? serve(req, res, next) : next())
}

/**
 * Gives each handler the quotas of the organization, which the transaction that creates something checks, and turns
 * refusals of the database into errors of the contract.
 */
function createHandlers(ctx: AppServiceContext): OperationHandlers<typeof APP_OPERATIONS, Visitor | Principal> {
  const limits = { quotas: toLimits(ctx.config.quotas) }
  const handlers: AppHandlers = {
    ...signInHandlers(ctx),
    ...oidcHandlers(ctx),
    ...meHandlers(ctx),
    ...userHandlers(ctx),
    ...organizationHandlers(ctx),
    ...workflowsHandlers(ctx),
    ...dataHandlers(ctx),
  }
  const served = (Object.keys(handlers) as AppOperationId[]).map((id) => [
    id,
    async (request: OperationRequest<AppOperation, Visitor | Principal>): Promise<OperationResponse> => {
      try {
        // `authorize` gives each operation the caller that its `access` promises.
        const response: object | void = await handlers[id]({ ...request, ...limits } as never)
        if (response instanceof ResponseWithHeaders || 'stream' in Object(response))
          return response as OperationResponse
        return { body: response as object }
      } catch (error) {
        if (error instanceof QuotaExceededError) throw quotaExceeded(ctx.config.quotas, error)
        if (error instanceof RoleLostError) throw new ApiError('forbidden_for_role', error.message)
        throw error instanceof EditRefused ? editRefused(error) : error
      }
    },
  ])
  return Object.fromEntries(served) as OperationHandlers<typeof APP_OPERATIONS, Visitor | Principal>
}

/** The refusals of an operation to a person that each process records per hour; the log has all of them. */
const RECORDED_REFUSALS: Quota = { limit: 5, windowSeconds: 3_600 }

/** Records in the audit log what a role does not allow. A person who goes on trying must not fill it. */
function auditRefusals({ db }: Pick<AppServiceContext, 'db'>): ErrorRequestHandler {
  const limiter = createLocalLimiter(RECORDED_REFUSALS)
  return async (error, _req, res, next) => {
    const { person: principal, operationId = '', requestId } = res.locals
    const isRefusal = principal && error instanceof ApiError && error.code === 'forbidden_for_role'
    if (isRefusal && limiter.consume(`${principal.userId} ${operationId}`).isAllowed) {
      await recordAuditEvent(db.pool, {
        principal,
        action: 'access.refused',
        target: { kind: 'operation', id: null, name: operationId },
        requestId,
      })
    }
    next(error)
  }
}

import { OPERATIONS } from '@workflow-service/contract'
import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import {
  type ApiError,
  answerHealthz,
  handleErrors,
  requestIdFrom,
  serveOperations,
  serviceUnavailable,
} from '@workflow-service/service-kit'
import cors from 'cors'
import express, { type Express, type RequestHandler } from 'express'
import type { AppContext } from './app-context.ts'
import { authorize } from './auth/authorize.ts'
import { docsRoutes } from './routes/docs.ts'
import { getOrganization } from './routes/get-organization.ts'
import { getWorkflow } from './routes/get-workflow.ts'
import { listWorkflows, listWorkflowsRules } from './routes/list-workflows.ts'
import { startWorkflow } from './routes/start-workflow.ts'

/** A context of 10,000 characters, each written as two \u escapes, takes 120,000 bytes. */
const MAX_BODY_BYTES = 256 * 1024
/** A start has three fields. More than a hundred unknown ones are only counted; beyond this, the body is not parsed. */
const MAX_BODY_MEMBERS = 1_000
const HANDLER_TIMEOUT_MS = 3_000

/** Creates the public API (contract README, "Public API"). Only the health check and the documentation need no API key. */
export function createApp(ctx: AppContext): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('trust proxy', ctx.config.trustProxy)
  app.use(logRequests(ctx))
  if (ctx.config.corsOrigins.length > 0) app.use(allowOrigins(ctx.config.corsOrigins))
  app.get('/healthz', answerHealthz)
  app.use(docsRoutes())
  app.use(
    serveOperations({
      operations: OPERATIONS,
      authorize: authorize(ctx),
      handlers: {
        getOrganization: getOrganization(),
        listWorkflows: listWorkflows(ctx),
        getWorkflow: getWorkflow(ctx),
        startWorkflow: startWorkflow(ctx),
      },
      rules: { listWorkflows: listWorkflowsRules },
      maxBodyBytes: MAX_BODY_BYTES,
      maxBodyMembers: MAX_BODY_MEMBERS,
      slots: {
        total: ctx.config.maxRequestsInFlight,
        perKey: Math.ceil(ctx.config.maxRequestsInFlight / 2),
        keyOf: ({ organizationId }) => organizationId,
      },
      handlerTimeoutMs: HANDLER_TIMEOUT_MS,
    }),
  )
  app.use(handleErrors(ctx.logger, toDatabaseError))
  return app
}

/** Gives each request its id and its list of answer headers; measures and logs it when its answer ends. */
function logRequests({ logger, gatewayMetrics }: Pick<AppContext, 'logger' | 'gatewayMetrics'>): RequestHandler {
  return (req, res, next) => {
    const startedMs = performance.now()
    const requestId = requestIdFrom(req.headers['x-request-id'])
    res.locals['requestId'] = requestId
    res.locals['answerHeaders'] = []
    res.once('close', () => {
      const durationMs = performance.now() - startedMs
      const { operationId = 'none', principal } = res.locals as { operationId?: string; principal?: Principal }
      gatewayMetrics.requests.observe({ operation: operationId, status: res.statusCode }, durationMs / 1_000)
      if (!logger.isLevelEnabled('info')) return
      logger.info(
        {
          request_id: requestId,
          operation: operationId,
          method: req.method,
          path: req.path,
          status: res.statusCode,
          duration_ms: Math.round(durationMs * 10) / 10,
          is_cut_off: !res.writableFinished,
          organization_id: principal?.organizationId,
          key_prefix: principal?.prefix,
        },
        'request.answered',
      )
    })
    next()
  }
}

/** Allows web pages of these origins to call the API. */
function allowOrigins(origins: readonly string[]): RequestHandler {
  const allow = cors({
    origin: [...origins],
    methods: ['GET', 'POST'],
    allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'X-Request-Id'],
    exposedHeaders: ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Request-Id'],
    maxAge: 600,
    optionsSuccessStatus: 200,
  })
  return (req, res, next) => {
    const { origin } = req.headers
    // `cors` would answer every OPTIONS request. One that is no preflight is an unknown method like any other.
    const mayUseCors = req.method !== 'OPTIONS' || req.headers['access-control-request-method'] !== undefined
    if (origin !== undefined && origins.includes(origin) && mayUseCors) allow(req, res, next)
    else next()
  }
}

function toDatabaseError(error: unknown): ApiError | undefined {
  if (!isDatabaseUnavailable(error)) return undefined
  return serviceUnavailable('The database does not answer; try again in a moment.', error)
}

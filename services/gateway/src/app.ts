import { OPERATIONS } from '@workflow-service/contract'
import { isDatabaseUnavailable } from '@workflow-service/database'
import {
  type BodyLimits,
  createPublicApp,
  handleErrors,
  logRequests,
  requestIdFrom,
  sendHealthz,
  serveOperations,
  type SpanAttributes,
  traceRequests,
} from '@workflow-service/service-kit'
import cors from 'cors'
import type { Express, RequestHandler, Response } from 'express'
import type { GatewayContext } from './gateway-context.ts'
import { authorize, authorizeAgain } from './auth/authorize.ts'
import { getRun, getSession } from './routes/get-run.ts'
import { getWorkflow, listWorkflows, listWorkflowsRules } from './routes/read-workflows.ts'
import { serveDocs } from './routes/serve-docs.ts'
import { startWorkflow } from './routes/start-workflow.ts'

/**
 * A context of 10,000 characters, each written as two \u escapes, takes 120,000 bytes. A start has three fields: more
 * than a hundred unknown ones are only counted, and a large body of more than `maxMembers` is not parsed.
 */
const BODY_LIMITS: BodyLimits = { maxBytes: 256 * 1024, maxMembers: 1_000, uncheckedBytes: 16 * 1024 }
const HANDLER_TIMEOUT_MS = 3_000

/**
 * Creates the public API (contract README, "Public API"). Only the health check and the documentation need no API key.
 */
export function createApp(ctx: GatewayContext): Express {
  const app = createPublicApp(ctx.config)
  app.use(keepRequestId)
  app.use(logResponses(ctx))
  if (ctx.tracing.isOn) app.use(traceRequests(ctx.tracing, OPERATIONS, organizationOf))
  if (ctx.config.corsOrigins.length > 0) app.use('/v1', allowOrigins(ctx.config.corsOrigins))
  app.get('/healthz', sendHealthz)
  app.use(serveDocs(ctx.config))
  app.use(
    serveOperations({
      operations: OPERATIONS,
      authorize: authorize(ctx),
      authorizeAgain: authorizeAgain(ctx),
      handlers: {
        // Read with the API key, so it is at most as old as the key's cache entry.
        getOrganization: ({ principal }) => ({
          body: { id: principal.organizationId, name: principal.organizationName },
        }),
        listWorkflows: listWorkflows(ctx),
        getWorkflow: getWorkflow(ctx),
        startWorkflow: startWorkflow(ctx),
        getRun: getRun(ctx),
        getSession: getSession(ctx),
      },
      rules: { listWorkflows: listWorkflowsRules },
      bodyLimits: () => BODY_LIMITS,
      slots: {
        total: ctx.config.maxRequestsInFlight,
        perKey: Math.ceil(ctx.config.maxRequestsInFlight / 2),
        keyOf: ({ organizationId }) => organizationId,
        metrics: ctx.metrics,
      },
      handlerTimeoutMs: HANDLER_TIMEOUT_MS,
    }),
  )
  app.use(handleErrors(ctx.logger, isDatabaseUnavailable))
  return app
}

/** Gives each request its id. `writeJson` writes it with the response. */
const keepRequestId: RequestHandler = (req, res, next) => {
  res.locals.requestId = requestIdFrom(req.headers['x-request-id'])
  next()
}

function logResponses({ logger, gatewayMetrics }: Pick<GatewayContext, 'logger' | 'gatewayMetrics'>): RequestHandler {
  return logRequests({
    logger,
    onAnswered: ({ locals, statusCode }, durationMs) => {
      gatewayMetrics.requests.observe(
        { operation: locals.operationId ?? 'none', status: statusCode },
        durationMs / 1_000,
      )
    },
    fieldsOf: ({ locals }) => {
      return { organization_id: locals.apiKey?.organizationId, key_prefix: locals.apiKey?.prefix }
    },
  })
}

/** The attributes of a request's span. */
function organizationOf({ locals }: Response): SpanAttributes {
  return { 'workflow_service.organization.id': locals.apiKey?.organizationId ?? null }
}

/** Allows web pages of these origins to call the API. */
function allowOrigins(origins: readonly string[]): RequestHandler {
  const allow = cors({
    origin: [...origins],
    methods: ['GET', 'POST'],
    // The client's own User-Agent is one: Firefox sends it, Chromium drops it.
    allowedHeaders: 'Authorization,Content-Type,Idempotency-Key,User-Agent,X-Request-Id,traceparent,tracestate',
    exposedHeaders: ['RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Request-Id'],
    maxAge: 600,
    optionsSuccessStatus: 200,
  })
  return (req, res, next) => {
    const { origin = '', 'access-control-request-method': requested } = req.headers
    const isOptions = req.method === 'OPTIONS'
    // `cors` answers every OPTIONS request. One that is no preflight is an unknown method like any other.
    if (!origins.includes(origin) || (isOptions && requested === undefined)) return next()
    if (isOptions) res.setHeader('X-Request-Id', res.locals.requestId)
    return allow(req, res, next)
  }
}

import { answerHealthz, handleErrors, healthRoutes, requestIdFrom } from '@workflow-service/service-kit'
import cors from 'cors'
import express, { type Express, type RequestHandler } from 'express'
import type { AppContext } from './app-context.ts'
import { docsRoutes } from './docs.ts'
import { guard } from './guard.ts'
import { mountOperations } from './mount-operations.ts'
import { getOrganization } from './routes/get-organization.ts'
import { getWorkflow } from './routes/get-workflow.ts'
import { checkListCursor, listWorkflows } from './routes/list-workflows.ts'
import { startWorkflow } from './routes/start-workflow.ts'

/** The public API (contract 4), with what needs no key before the guard. */
export function createApp(ctx: AppContext): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', false)
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('trust proxy', ctx.config.trustProxy)
  app.use(observe(ctx))
  if (ctx.config.corsOrigins.length > 0) app.use(allowOrigins(ctx.config.corsOrigins))
  app.get('/healthz', answerHealthz)
  app.use(docsRoutes())
  app.use(guard(ctx))
  mountOperations(
    app,
    {
      getOrganization: getOrganization(),
      listWorkflows: listWorkflows(ctx),
      getWorkflow: getWorkflow(ctx),
      startWorkflow: startWorkflow(ctx),
    },
    { listWorkflows: checkListCursor },
  )
  app.use(handleErrors(ctx.logger))
  return app
}

/** What operators ask, on a port of its own. Starts survive the broker's absence, so that is no reason for a 503. */
export function createMetricsApp(ctx: AppContext): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.use(
    healthRoutes({
      metrics: ctx.metrics,
      checks: { postgres: () => ctx.db.ping() },
      optionalChecks: { rabbitmq: () => ctx.sessionQueue.ping() },
    }),
  )
  return app
}

/** Gives each request its id and its place for answer headers; counts it and writes one line when its answer ends. */
function observe({ logger, gatewayMetrics }: Pick<AppContext, 'logger' | 'gatewayMetrics'>): RequestHandler {
  return (req, res, next) => {
    const startedMs = performance.now()
    const requestId = requestIdFrom(req.headers['x-request-id'])
    res.locals['requestId'] = requestId
    res.locals['answerHeaders'] = []
    res.once('close', () => {
      const durationMs = performance.now() - startedMs
      const { operationId = 'none', principal } = res.locals as {
        operationId?: string
        principal?: { organizationId: string; prefix: string }
      }
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

/** CORS for the origins named, and for no other: their pages may read the answers and send what the API takes. */
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
    // An OPTIONS that is no preflight goes the way of every unknown method.
    const isPreflight = req.method !== 'OPTIONS' || req.headers['access-control-request-method'] !== undefined
    if (origin !== undefined && origins.includes(origin) && isPreflight) allow(req, res, next)
    else next()
  }
}

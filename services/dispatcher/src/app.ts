import { describeInternalApi, INTERNAL_OPERATIONS } from '@workflow-service/contract'
import { isDatabaseUnavailable, RoleLostError } from '@workflow-service/database'
import {
  ApiError,
  assignRequestId,
  createExpressApp,
  handleErrors,
  type HealthOptions,
  healthRoutes,
  logRequests,
  serveOpenApi,
  serveOperations,
  traceRequests,
} from '@workflow-service/service-kit'
import type { ErrorRequestHandler, Express } from 'express'
import type { DispatcherContext } from './dispatcher-context.ts'
import { validateLookup } from './lookups/validate-lookup.ts'
import { requireToken } from './require-token.ts'
import { lookupHandlers } from './routes/lookups.ts'
import { organizationHandlers } from './routes/organizations.ts'
import { checkDelivery, sendPayload } from './routes/send-payload.ts'
import { sendPayloads } from './routes/send-payloads.ts'
import { sourceHandlers } from './routes/webhook-sources.ts'
import { validateSource } from './sources/validate-source.ts'

/** Enough for the largest payload (256 KiB), which the runner writes compactly, and a source with white space. */
export const BODY_MAX_BYTES = 512 * 1024
/** Maximum calls in flight. Each may hold a body of 512 KiB in memory. Runners are trusted not to take all. */
const MAX_CALLS_IN_FLIGHT = 4_000

const refuseLostRoles: ErrorRequestHandler = (error, _req, _res, next) =>
  next(error instanceof RoleLostError ? new ApiError('forbidden_for_role', error.message) : error)

/** Creates the internal API. Health, metrics and the OpenAPI document need no token. */
export function createApp(ctx: DispatcherContext, health: HealthOptions): Express {
  const app = createExpressApp()
  app.use(assignRequestId)
  app.use(healthRoutes(health))
  app.get('/internal/openapi.json', serveOpenApi(describeInternalApi))
  app.use(
    logRequests({
      logger: ctx.logger,
      // A delivery has its own log line.
      levelOf: ({ path }, { statusCode }) =>
        path.startsWith('/internal/deliveries') && statusCode === 200 ? 'debug' : 'info',
    }),
  )
  if (ctx.tracing.isOn) app.use(traceRequests(ctx.tracing, INTERNAL_OPERATIONS))
  app.use(
    serveOperations({
      operations: INTERNAL_OPERATIONS,
      authorize: requireToken(ctx.config.internalApiTokens),
      handlers: {
        ...sourceHandlers(ctx),
        ...organizationHandlers(ctx),
        ...lookupHandlers(ctx),
        sendPayload: sendPayload(ctx),
        sendPayloads: sendPayloads(ctx),
      },
      rules: {
        saveWebhookSource: { body: validateSource(ctx.config.allowedSubnets) },
        checkWebhookSource: { body: validateSource(ctx.config.allowedSubnets) },
        saveLookup: { body: validateLookup(ctx.config.allowedSubnets) },
        sendPayload: { body: checkDelivery },
      },
      isInternal: true,
      bodyLimits: () => ({ maxBytes: BODY_MAX_BYTES }),
      slots: {
        total: MAX_CALLS_IN_FLIGHT,
        perKey: MAX_CALLS_IN_FLIGHT,
        keyOf: () => 'all callers',
        metrics: ctx.metrics,
      },
    }),
  )
  app.use(refuseLostRoles)
  app.use(handleErrors(ctx.logger, isDatabaseUnavailable))
  return app
}

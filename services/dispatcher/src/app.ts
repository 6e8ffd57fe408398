import { describeInternalApi } from '@workflow-service/contract'
import { isDatabaseUnavailable } from '@workflow-service/database'
import {
  assignRequestId,
  handleErrors,
  handleNotFound,
  healthRoutes,
  serviceUnavailable,
} from '@workflow-service/service-kit'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import type { AppContext } from './app-context.ts'
import { authenticate } from './authenticate.ts'
import { mountOperations } from './mount-operations.ts'
import { deleteSource } from './routes/delete-webhook-source.ts'
import { getSource } from './routes/get-webhook-source.ts'
import { listSourceDeliveries } from './routes/list-deliveries.ts'
import { listSources } from './routes/list-webhook-sources.ts'
import { saveSource } from './routes/save-webhook-source.ts'
import { sendPayload } from './routes/send-payload.ts'
import { testSource } from './routes/test-webhook-source.ts'

/** The internal API (design 7) and the health routes, which need no token. */
export function createApp(ctx: AppContext): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', 'simple')
  app.use(assignRequestId)
  app.use(healthRoutes({ metrics: ctx.metrics, checks: { postgres: () => ctx.db.ping() } }))
  const document = describeInternalApi()
  app.get('/internal/openapi.json', (_req, res) => {
    res.json(document)
  })
  app.use(logRequests(ctx), authenticate(ctx.config.internalApiTokens))
  app.use(
    mountOperations({
      listWebhookSources: listSources(ctx),
      getWebhookSource: getSource(ctx),
      saveWebhookSource: saveSource(ctx),
      deleteWebhookSource: deleteSource(ctx),
      testWebhookSource: testSource(ctx),
      listDeliveries: listSourceDeliveries(ctx),
      sendPayload: sendPayload(ctx),
    }),
  )
  app.use(handleNotFound, tellOfDatabase, handleErrors(ctx.logger))
  return app
}

const tellOfDatabase: ErrorRequestHandler = (error, _req, _res, next) => {
  next(isDatabaseUnavailable(error) ? serviceUnavailable('The database does not answer; try again.', error) : error)
}

/** One line when a request ends; a delivery that was answered has a line of its own. */
function logRequests({ logger }: Pick<AppContext, 'logger'>): RequestHandler {
  return (req, res, next) => {
    const startedMs = performance.now()
    res.once('close', () => {
      const isDelivery = req.path.startsWith('/internal/deliveries/') && res.statusCode === 200
      logger[isDelivery ? 'debug' : 'info'](
        {
          request_id: res.locals['requestId'],
          method: req.method,
          path: req.path,
          status: res.statusCode,
          is_cut_off: !res.writableFinished,
          duration_ms: Math.round(performance.now() - startedMs),
        },
        'request.answered',
      )
    })
    next()
  }
}

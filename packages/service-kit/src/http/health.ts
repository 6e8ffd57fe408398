import { type Express, type Request, type Response, Router } from 'express'
import { describeError, type Logger } from '../logger.ts'
import type { Registry } from '../metrics.ts'
import { withTimeout } from '../with-timeout.ts'
import { handleErrors, handleNotFound, sendError, serviceUnavailable } from './errors.ts'
import { createExpressApp } from './express-app.ts'
import { assignRequestId } from './request-id.ts'
import { writeJson } from './write-json.ts'

export interface HealthOptions {
  metrics: Registry
  /** For each dependency's name, a check that rejects when the dependency does not answer. */
  checks: Record<string, () => Promise<void>>
  /**
   * Checks whose results are reported but neither make the service unready nor delay the response by more than 0.5 s.
   */
  optionalChecks?: Record<string, () => Promise<void>> | undefined
  /** Makes `/readyz` fail while the process stops, so that load balancers choose another one. */
  isStopping: () => boolean
  /** How long one check may take before it counts as failed. Default: 2,000. */
  timeoutMs?: number
  logger: Logger
}

/**
 * A load balancer that waits less long for `/readyz` than a dependency hangs would call every process dead, although it
 * works.
 */
const OPTIONAL_TIMEOUT_MS = 500

/** Answers `GET /healthz`: the process is up. */
export function sendHealthz(_req: Request, res: Response): void {
  void writeJson(res, { status: 200, body: '{"status":"ok"}', requestId: res.locals.requestId })
}

/**
 * Creates `GET /healthz`, `GET /readyz` and `GET /metrics` (Prometheus). `/readyz` answers 200 `{status, checks}` when
 * every dependency answers, else 503 in the error shape with the names of those that do not, or that the service is
 * stopping. Logs why a dependency does not answer, once until it answers again.
 */
export function healthRoutes(options: HealthOptions): Router {
  const { checks, optionalChecks = {}, isStopping, metrics, timeoutMs = 2_000, logger } = options
  const router = Router()
  const unavailable = new Set<string>()
  const report = (dependency: string, failure?: { readonly error: unknown }): void => {
    if (failure === undefined) {
      if (unavailable.delete(dependency)) logger.info({ dependency }, 'dependency.available')
    } else if (!unavailable.has(dependency)) {
      unavailable.add(dependency)
      logger.warn({ dependency, error: describeError(failure.error) }, 'dependency.unavailable')
    }
  }
  router.get('/healthz', sendHealthz)
  router.get('/readyz', async (_req, res) => {
    if (isStopping()) return sendError(res, serviceUnavailable('Not ready: the service is stopping.'))
    const [required, optional] = await Promise.all([
      runChecks(checks, timeoutMs, report),
      runChecks(optionalChecks, OPTIONAL_TIMEOUT_MS),
    ])
    const failed = Object.keys(required).filter((name) => required[name] !== 'ok')
    if (failed.length > 0) return sendError(res, serviceUnavailable(`Not ready: ${failed.join(', ')} does not answer.`))
    res.json({ status: 'ok', checks: { ...required, ...optional } })
  })
  router.get('/metrics', async (_req, res) => {
    res.type(metrics.contentType).send(await metrics.metrics())
  })
  return router
}

/** Creates the operators' server of a service: the health routes alone. */
export function createHealthApp(options: HealthOptions): Express {
  return createExpressApp()
    .use(assignRequestId, healthRoutes(options))
    .use(handleNotFound)
    .use(handleErrors(options.logger))
}

async function runChecks(
  checks: HealthOptions['checks'],
  timeoutMs: number,
  report: (name: string, failure?: { readonly error: unknown }) => void = () => {},
): Promise<Record<string, 'ok' | 'failed'>> {
  const results = Object.entries(checks).map(async ([name, check]) => {
    try {
      await withTimeout(check(), timeoutMs)
      report(name)
      return [name, 'ok'] as const
    } catch (error) {
      report(name, { error })
      return [name, 'failed'] as const
    }
  })
  return Object.fromEntries(await Promise.all(results))
}

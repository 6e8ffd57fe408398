import { type Request, type Response, Router } from 'express'
import { ApiError } from './errors.ts'
import { sendError } from './errors.ts'
import type { Registry } from '../metrics.ts'

export interface HealthOptions {
  metrics: Registry
  /** Each dependency's name and a question that rejects when it does not answer. */
  checks: Record<string, () => Promise<void>>
  /** The same for what the service can do without for a while: told in the answer, and no reason for a 503. */
  optionalChecks?: Record<string, () => Promise<void>>
  /** How long one check may take before it counts as failed. Default 2,000. */
  timeoutMs?: number
}

/** `GET /healthz`: the process is up. */
export function answerHealthz(_req: Request, res: Response): void {
  res.json({ status: 'ok' })
}

/**
 * `GET /healthz`, `GET /readyz` (200 `{status, checks}` when every dependency answers, else 503 in the error shape, naming
 * the ones that do not) and `GET /metrics` (Prometheus).
 */
export function healthRoutes(options: HealthOptions): Router {
  const { checks, optionalChecks = {}, metrics, timeoutMs = 2_000 } = options
  const router = Router()
  router.get('/healthz', answerHealthz)
  router.get('/readyz', async (_req, res) => {
    const [required, optional] = await Promise.all([runChecks(checks, timeoutMs), runChecks(optionalChecks, timeoutMs)])
    const failed = Object.keys(required).filter((name) => required[name] !== 'ok')
    if (failed.length === 0) {
      res.json({ status: 'ok', checks: { ...required, ...optional } })
      return
    }
    sendError(
      res,
      new ApiError('service_unavailable', `Not ready: ${failed.join(', ')} does not answer.`, {
        headers: { 'Retry-After': '1' },
      }),
    )
  })
  router.get('/metrics', async (_req, res) => {
    res.type(metrics.contentType).send(await metrics.metrics())
  })
  return router
}

async function runChecks(checks: HealthOptions['checks'], timeoutMs: number): Promise<Record<string, 'ok' | 'failed'>> {
  const results = Object.entries(checks).map(
    async ([name, check]) => [name, (await answers(check, timeoutMs)) ? 'ok' : 'failed'] as const,
  )
  return Object.fromEntries(await Promise.all(results))
}

async function answers(check: () => Promise<void>, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), timeoutMs)
  check().then(
    () => resolve(true),
    () => resolve(false),
  )
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

import { ApiError } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'

/** The host names of this machine. */
export const LOOPBACK_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Refuses requests to hosts other than those of APP_URL and loopback: a name that a stranger's DNS points to this
 * machine would make the stranger's page the same origin. Reads `Host` alone, because a page can set
 * `X-Forwarded-Host`. Ports may differ.
 * @throws ApiError 421 `misdirected_request`
 */
export function requireHost(appUrl: string | undefined): RequestHandler {
  const ownName = appUrl === undefined ? undefined : new URL(appUrl).hostname
  return (req, _res, next) => {
    const name = (req.headers.host ?? '').toLowerCase().replace(/:\d*$/, '')
    if (name === ownName || LOOPBACK_NAME.test(name)) return next()
    throw new ApiError(
      'misdirected_request',
      appUrl === undefined
        ? 'The application answers on its own machine only, because APP_URL is not set: set it to the address that people type.'
        : `The application is at ${appUrl}, and answers at no other host. Open it there, or set APP_URL; a proxy must pass Host on.`,
    )
  }
}

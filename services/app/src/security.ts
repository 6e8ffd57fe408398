import { ApiError } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'

/** Nothing from another host, no inline script or style, no frame, and no string that becomes markup. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Sets the security headers of every answer. Answers of the API then narrow them (service-kit, `SECURITY_HEADERS`). */
export function securityHeaders(appUrl: string | undefined): RequestHandler {
  const headers = new Headers({
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    ...(appUrl?.startsWith('https:') ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
  })
  return (_req, res, next) => {
    res.setHeaders(headers)
    next()
  }
}

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

import { hash as digest, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@workflow-service/service-kit'
import type { RequestHandler } from 'express'

/**
 * Lets only callers with one of the tokens through (`Authorization: Bearer …`). Every token is compared, each in constant
 * time and as a hash, so that neither the time nor the length tells anything.
 */
export function authenticate(tokens: readonly string[]): RequestHandler {
  const hashes = tokens.map(hash)
  return (req, _res, next) => {
    const given = /^Bearer +(\S+) *$/i.exec(req.headers.authorization ?? '')?.[1]
    const givenHash = hash(given ?? '')
    const matches = hashes.filter((known) => timingSafeEqual(known, givenHash)).length
    if (given !== undefined && matches > 0) {
      next()
      return
    }
    next(
      new ApiError('unauthorized', 'Send Authorization: Bearer with a token of INTERNAL_API_TOKEN.', {
        headers: { 'WWW-Authenticate': 'Bearer' },
      }),
    )
  }
}

function hash(token: string): Buffer {
  return digest('sha256', token, 'buffer')
}

import { hash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@workflow-service/service-kit'
import type { Request } from 'express'

/**
 * Creates the check that a request has one of the tokens (`Authorization: Bearer …`). Compares hashes in constant time,
 * so that neither the time nor the length of a token leaks.
 * @throws ApiError 401
 */
export function requireToken(tokens: readonly string[]): (req: Request) => void {
  const hashes = tokens.map(hashToken)
  return (req) => {
    const token = /^Bearer +(\S+) *$/i.exec(req.headers.authorization ?? '')?.[1]
    const tokenHash = hashToken(token ?? '')
    // Compares with every token, so that the time does not depend on which one matches.
    const matches = hashes.filter((known) => timingSafeEqual(known, tokenHash))
    if (token !== undefined && matches.length > 0) return
    throw new ApiError('unauthorized', 'Send Authorization: Bearer with a token of INTERNAL_API_TOKEN.', {
      headers: { 'WWW-Authenticate': 'Bearer' },
    })
  }
}

function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

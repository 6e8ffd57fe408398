import { SIGN_IN_MAX_DAYS } from '@workflow-service/database'

/**
 * The prefix makes browsers refuse a cookie unless this host set it, with Secure and for every path (RFC 6265bis,
 * 4.1.3.2).
 */
export const SIGN_IN_COOKIE = '__Host-session'
/** A browser keeps it only if it keeps that of a sign-in: it has the same attributes. */
export const TRIAL_COOKIE = '__Host-trial'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'

/** Returns the `Set-Cookie` that gives the browser a cookie; with an age of 0, it forgets the cookie. */
export function setCookie(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; ${ATTRIBUTES}; Max-Age=${maxAgeSeconds}`
}

/** Returns the `Set-Cookie` that gives the browser the token of a sign-in. */
export function signInCookie(token: string): string {
  return setCookie(SIGN_IN_COOKIE, token, SIGN_IN_MAX_DAYS * 86_400)
}

/** Returns the value of a cookie; undefined without one. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  const pair = pairs.find((each) => each.startsWith(`${name}=`))
  return pair?.slice(name.length + 1) || undefined
}

import { SIGN_IN_MAX_DAYS } from '@workflow-service/database'

/**
 * The prefix makes browsers refuse a cookie unless this host set it, with Secure and for every path (RFC 6265bis,
 * 4.1.3.2).
 */
export const SIGN_IN_COOKIE = '__Host-session'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'

/** Returns the headers that give the browser a cookie; an empty value makes it forget the cookie. */
export function setCookie(name: string, value: string, maxAgeSeconds: number): readonly string[] {
  return ['Set-Cookie', `${name}=${value}; ${ATTRIBUTES}; Max-Age=${value === '' ? 0 : maxAgeSeconds}`]
}

/** Returns the headers that give the browser the token of a sign-in. */
export function signInCookie(token: string): readonly string[] {
  return setCookie(SIGN_IN_COOKIE, token, SIGN_IN_MAX_DAYS * 86_400)
}

const TRIAL_COOKIE = '__Host-trial'

/**
 * Returns the headers of a cookie that a browser keeps only if it keeps that of a sign-in: it has the same attributes.
 */
export function trialCookie(): readonly string[] {
  return setCookie(TRIAL_COOKIE, '1', 60)
}

export function hasTrialCookie(header: string | undefined): boolean {
  return readCookie(header, TRIAL_COOKIE) !== undefined
}

/** Returns the value of a cookie; undefined without one. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  const pair = pairs.find((each) => each.startsWith(`${name}=`))
  return pair?.slice(name.length + 1) || undefined
}

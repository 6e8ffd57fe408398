import { SIGN_IN_MAX_DAYS } from '@workflow-service/database'

/** The prefix makes browsers refuse the cookie unless this host set it, with Secure and for every path (RFC 6265bis, 4.1.3.2). */
const COOKIE_NAME = '__Host-session'
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax'

/** Returns the headers that give the browser the token of a sign-in. */
export function sessionCookie(token: string): readonly string[] {
  return ['Set-Cookie', `${COOKIE_NAME}=${token}; ${ATTRIBUTES}; Max-Age=${SIGN_IN_MAX_DAYS * 86_400}`]
}

/** Returns the headers that make the browser forget the token. */
export function expiredCookie(): readonly string[] {
  return ['Set-Cookie', `${COOKIE_NAME}=; ${ATTRIBUTES}; Max-Age=0`]
}

/** Returns the token of a Cookie header; undefined without one. */
export function readSessionCookie(header: string | undefined): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  const pair = pairs.find((each) => each.startsWith(`${COOKIE_NAME}=`))
  return pair?.slice(COOKIE_NAME.length + 1) || undefined
}

import { isIPv4 } from 'node:net'
import { countCodePoints, ENDPOINT_URL_MAX_LENGTH } from '@workflow-service/contract'
import { findAddressError } from './find-address-error.ts'
import { NO_SUBNETS, type Subnets } from './parse-subnets.ts'

/** Error codes of a refused URL, as the answer to a save has them. */
type UrlErrorCode = 'string_too_long' | 'url_parsing' | 'url_scheme' | 'url_not_public'

/**
 * `host` is an address, which has been checked and may be connected to, or a name, which must be resolved first, and
 * each of its addresses checked. `message` is a sentence without its full stop, `detail` a part of one.
 */
export type UrlCheck = { isAllowed: true; url: URL; host: string } | RefusedUrl

interface RefusedUrl {
  isAllowed: false
  code: UrlErrorCode
  message: string
  detail: string
}

/**
 * Checks an endpoint URL as typed, without DNS: `http` or `https`, at most 2,000 characters, no user info, and a host
 * that is a public address or a name that can be public. Addresses in `allowed` pass. If `allowed` has any subnet,
 * private-use and single-label names pass too, because the addresses that DNS returns for them are checked against it
 * later. Implements contract README, "Endpoint addresses".
 */
export function checkUrl(text: string, allowed: Subnets = NO_SUBNETS): UrlCheck {
  if (isLongerThan(text, ENDPOINT_URL_MAX_LENGTH)) {
    return refuse('string_too_long', `The URL must have at most ${ENDPOINT_URL_MAX_LENGTH} characters`)
  }
  if (text === '') return refuse('url_parsing', 'The URL must not be empty')
  const scheme = /^([a-z][a-z0-9+.-]*):/iu.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https' && !looksLikeHostAndPort(text)) {
    return refuse('url_scheme', 'The URL must start with https:// or http://')
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  const spellingError = findSpellingError(text)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return refuse(
      'url_parsing',
      spellingError ?? 'The text is not a valid URL: check the host and the port, and write it like https://host/path',
    )
  }
  // A private host is the more serious error, so it is reported before a spelling error.
  const host = checkHost(url, allowed)
  if (typeof host !== 'string') return host
  if (spellingError !== undefined) return refuse('url_parsing', spellingError)
  if (isIPv4(url.hostname) && readAuthority(text).replace(/:\d*$/u, '') !== url.hostname) {
    return refuseAsNotPublic(`the host is another spelling of ${url.hostname}: write it like that`)
  }
  if (url.port === '0') return refuse('url_parsing', 'Port 0 cannot be reached: use a port from 1 to 65535')
  return { isAllowed: true, url, host }
}

/** `example.com:8080` parses as a URL with a scheme, but means that `https://` was forgotten. */
function looksLikeHostAndPort(text: string): boolean {
  return /^[^/:]*\.[^/:]*:\d|^localhost:\d/iu.test(text)
}

/**
 * Finds spellings that URL parsers silently change, so that a reader and a program see different hosts: parsers drop
 * tabs and line breaks, read a backslash as a slash, and take everything before an `@` for user info.
 */
function findSpellingError(text: string): string | undefined {
  if (/[\p{Cc}\p{White_Space}]/u.test(text))
    return 'The URL must not contain spaces, tabs, line breaks or control characters'
  if (text.includes('\\')) return 'The URL must not contain a backslash: use /'
  if (!text.isWellFormed()) return 'The URL contains half of a surrogate pair'
  const start = /^https?:\/\/(?!\/)/iu.exec(text)?.[0]
  if (start === undefined) return 'The URL must start with https:// or http:// and then name a host'
  const authority = readAuthority(text)
  if (authority.includes('@')) return 'The URL must not contain a user name or password: use a signing secret'
  if (authority.includes('%')) return 'The host must be written without percent signs'
  // URL parsers drop these. The two joiners (ZWNJ, ZWJ) stay allowed: names in some scripts need them.
  if (/[^\P{Default_Ignorable_Code_Point}\u200C\u200D]/u.test(authority)) {
    return 'The host contains invisible characters'
  }
  return undefined
}

function readAuthority(text: string): string {
  return /^https?:\/\/([^/?#]*)/iu.exec(text)?.[1] ?? ''
}

function checkHost({ hostname }: URL, allowed: Subnets): string | RefusedUrl {
  if (hostname.startsWith('[')) return checkLiteralAddress(hostname.slice(1, -1), allowed)
  if (isIPv4(hostname)) return checkLiteralAddress(hostname, allowed)
  return checkName(hostname.replace(/\.$/u, ''), allowed)
}

function checkLiteralAddress(address: string, allowed: Subnets): string | RefusedUrl {
  const error = findAddressError(address, allowed)
  return error === undefined ? address : refuseAsNotPublic(error)
}

function checkName(name: string, allowed: Subnets): string | RefusedUrl {
  const labels = name.split('.')
  if (labels.some((label) => label.length > 63) || name.length > 253) {
    return refuse('url_parsing', 'The host name must have at most 253 characters, and 63 between two dots')
  }
  if (!labels.every((label) => /^[a-z0-9_-]+$/u.test(label))) {
    return refuse('url_parsing', 'The host name may contain only letters, digits and hyphens, with single dots between')
  }
  const last = labels.at(-1) ?? ''
  if (allowed.cidrs.length > 0) return name
  if (labels.length === 1 || !/^(?:[a-z]+|xn--[a-z0-9-]+)$/u.test(last)) {
    return refuseAsNotPublic(`the host name "${name}" has no top-level domain`)
  }
  const suffix = PRIVATE_USE_SUFFIXES.find((candidate) => `.${name}`.endsWith(candidate))
  if (suffix === undefined) return name
  return refuseAsNotPublic(`host names that end in ${suffix} are private`)
}

/**
 * Names that the public DNS does not have or should not have (RFC 6761, 6762, 7686, 8375; `.internal` by ICANN, and the
 * names that ICANN never delegates because private networks use them). They only give a clear error before the DNS
 * look-up: what protects is the check of the addresses.
 */
const PRIVATE_USE_SUFFIXES = [
  '.localhost',
  '.local',
  '.localdomain',
  '.internal',
  '.intranet',
  '.private',
  '.lan',
  '.home.arpa',
  '.home',
  '.corp',
  '.onion',
]

/** Counts code points only where the UTF-16 length leaves the question open, so that a huge text costs nothing. */
function isLongerThan(text: string, limit: number): boolean {
  return text.length > limit && (text.length > 2 * limit || countCodePoints(text) > limit)
}

function refuse(code: UrlErrorCode, message: string): RefusedUrl {
  return { isAllowed: false, code, message, detail: message }
}

function refuseAsNotPublic(detail: string): RefusedUrl {
  const message = `The endpoint must be publicly reachable: ${detail}`
  return { isAllowed: false, code: 'url_not_public', message, detail }
}

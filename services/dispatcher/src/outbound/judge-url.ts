import { isIPv4 } from 'node:net'
import { judgeAddress } from './judge-address.ts'
import { noSubnets } from './parse-subnets.ts'
import type { Subnets } from './parse-subnets.ts'

/** The longest endpoint URL, in Unicode code points (contract, section 8). */
export const maxUrlLength = 2000

/** Field codes of a refused URL, as they stand in the answer to a save. */
export type UrlFaultCode = 'string_too_long' | 'url_parsing' | 'url_scheme' | 'url_not_public'

/**
 * Where a judged URL points. An `address` has been judged and may be dialled; a `name` must be resolved, and each of
 * its addresses judged, first. `loopbackName` is `localhost` or below it, which only an allow-list lets through.
 */
export type UrlHost =
  | { kind: 'address'; address: string }
  | { kind: 'name'; name: string }
  | { kind: 'loopbackName'; name: string }

/** `message` is a whole sentence without its full stop, `detail` a part of one; `address` is what was refused, if it is one. */
export type UrlVerdict =
  | { ok: true; url: URL; host: UrlHost }
  | { ok: false; code: UrlFaultCode; message: string; detail: string; address: string | null }

/**
 * Judges an endpoint URL as typed, without asking DNS: `http` or `https`, at most 2,000 characters, no user info, and
 * a host that is a public address or a name that can be public. What lies in `allowed` is let through; any `allowed`
 * subnet at all also lets private-use and single-label names through, since DNS then decides over them.
 */
export function judgeUrl(text: string, allowed: Subnets = noSubnets): UrlVerdict {
  if (isLongerThan(text, maxUrlLength)) {
    return fault('string_too_long', `The URL must have at most ${maxUrlLength} characters`)
  }
  if (text === '') return fault('url_parsing', 'The URL must not be empty')
  const scheme = /^([a-z][a-z0-9+.-]*):/iu.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https' && !looksLikeHostAndPort(text)) {
    return fault('url_scheme', 'The URL must start with https:// or http://')
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  const spelling = findSpellingFault(text)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return fault(
      'url_parsing',
      spelling ?? 'The text is no valid URL: check the host and the port, and write it like https://host/path',
    )
  }
  // A host that is not public is the graver fault, so it is named before the way it was spelled.
  const host = judgeHost(url, allowed)
  if ('code' in host) return host
  if (spelling !== undefined) return fault('url_parsing', spelling)
  if (isIPv4(url.hostname) && readAuthority(text).replace(/:\d*$/u, '') !== url.hostname) {
    return notPublic(`the host is another spelling of ${url.hostname}: write it like that`, url.hostname)
  }
  if (url.port === '0') return fault('url_parsing', 'Port 0 cannot be reached: use a port from 1 to 65535')
  return { ok: true, url, host }
}

/** `example.com:8080` reads as a scheme to a parser, but means a forgotten `https://`. */
function looksLikeHostAndPort(text: string): boolean {
  return /^[^/:]*\.[^/:]*:\d|^localhost:\d/iu.test(text)
}

/**
 * Faults in the text itself, before any parser: parsers drop tabs and line ends, read a backslash as a slash, and take
 * everything before an `@` for user info, so that people and programs see different hosts.
 */
function findSpellingFault(text: string): string | undefined {
  if (/[\p{Cc}\p{White_Space}]/u.test(text))
    return 'The URL must not hold spaces, tabs, line ends or control characters'
  if (text.includes('\\')) return 'The URL must not hold a backslash: use /'
  if (!text.isWellFormed()) return 'The URL holds half of a surrogate pair'
  const start = /^https?:\/\/(?!\/)/iu.exec(text)?.[0]
  if (start === undefined) return 'The URL must start with https:// or http:// and then name a host'
  const authority = readAuthority(text)
  if (authority.includes('@')) return 'The URL must not hold a user name or password: use a signing secret'
  if (authority.includes('%')) return 'The host must be written without percent signs'
  // Parsers drop these. The two joiners are left to them: some scripts need them in names.
  if (/[^\P{Default_Ignorable_Code_Point}\u200C\u200D]/u.test(authority)) return 'The host holds invisible characters'
  return undefined
}

function readAuthority(text: string): string {
  return /^https?:\/\/([^/?#]*)/iu.exec(text)?.[1] ?? ''
}

function judgeHost({ hostname }: URL, allowed: Subnets): UrlHost | (UrlVerdict & { ok: false }) {
  if (hostname.startsWith('[')) return judgeLiteral(hostname.slice(1, -1), allowed)
  if (isIPv4(hostname)) return judgeLiteral(hostname, allowed)
  return judgeName(hostname.replace(/\.$/u, ''), allowed)
}

function judgeLiteral(address: string, allowed: Subnets): UrlHost | (UrlVerdict & { ok: false }) {
  const verdict = judgeAddress(address, allowed)
  if (verdict.permitted) return { kind: 'address', address }
  return notPublic(verdict.detail, address)
}

function judgeName(name: string, allowed: Subnets): UrlHost | (UrlVerdict & { ok: false }) {
  const labels = name.split('.')
  if (labels.some((label) => label.length > 63) || name.length > 253) {
    return fault('url_parsing', 'The host name must have at most 253 characters, and 63 between two dots')
  }
  if (!labels.every((label) => /^[a-z0-9_-]+$/u.test(label))) {
    return fault('url_parsing', 'The host name may hold only letters, digits and hyphens, with single dots between')
  }
  const last = labels.at(-1) ?? ''
  if (allowed.cidrs.length > 0) return { kind: last === 'localhost' ? 'loopbackName' : 'name', name }
  if (labels.length === 1 || !/^(?:[a-z]+|xn--[a-z0-9-]+)$/u.test(last)) {
    return notPublic(`the host name "${name}" has no top-level domain`)
  }
  const suffix = privateUseSuffixes.find((candidate) => `.${name}`.endsWith(candidate))
  if (suffix === undefined) return { kind: 'name', name }
  return notPublic(`host names that end in ${suffix} are private`)
}

/**
 * Names that the public DNS does not or should not hold (RFC 6761, 6762, 7686, 8375; ICANN on `.internal`, and the
 * names it will never delegate because private networks use them). A courtesy that gives a clear refusal before DNS
 * is asked; the judgement of the addresses is what protects.
 */
const privateUseSuffixes = [
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

function isLongerThan(text: string, limit: number): boolean {
  return text.length > limit && (text.length > 2 * limit || Array.from(text).length > limit)
}

function fault(code: UrlFaultCode, message: string): UrlVerdict & { ok: false } {
  return { ok: false, code, message, detail: message, address: null }
}

function notPublic(detail: string, address: string | null = null): UrlVerdict & { ok: false } {
  const message = `The endpoint must be publicly reachable: ${detail}`
  return { ok: false, code: 'url_not_public', message, detail, address }
}

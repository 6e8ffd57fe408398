import type { AppErrorBody } from '@workflow-service/contract'
import { quote } from '../../components/quote.ts'

const UNREACHABLE: Record<string, string> & { other: string } = {
  name_not_found: 'The name of this server does not exist in DNS. Check the host for a typing error.',
  dns_failed: 'DNS did not answer for this server. Try again; if it stays, check the DNS records of the host.',
  connection_refused:
    'The server refused the connection: nothing listens on this port. Start your endpoint, or correct the port.',
  connection_reset:
    'The server broke the connection before it answered. Look for a firewall, or at the log of your endpoint.',
  connection_closed: 'The server closed the connection without an answer. Look at the log of your endpoint.',
  no_route: 'No network path leads to this server. Check the host and its firewall.',
  invalid_answer: 'The answer was not valid HTTP. Check that a web server listens on this port.',
  proxy: 'The proxy of this service could not be used. Ask the operator of this service.',
  beyond_proxy:
    'The proxy of this service could not reach the server. Check the host, or ask the operator of this service.',
  other: 'The server could not be reached. Check the URL and that your endpoint runs.',
}

const TLS: Record<string, string> & { other: string } = {
  expired: 'The certificate of this server has expired. Renew it.',
  not_yet_valid: 'The certificate of this server is not valid yet. Check its dates and the clock of the server.',
  self_signed: 'The server has a self-signed certificate. Use one of a public authority, such as Let’s Encrypt.',
  untrusted:
    'The certificate was not issued by a trusted authority, or the server does not send its intermediate certificates.',
  wrong_name: 'The certificate belongs to another name. Use the host that it was issued for.',
  revoked: 'The certificate of this server has been revoked. Replace it.',
  protocol: 'The server offers no TLS 1.2 or newer. Update its TLS settings.',
  not_tls: 'The server does not speak TLS on this port. Use http:// or the port of HTTPS.',
  other: 'The secure connection failed. Check the certificate and the TLS settings of the server.',
}

const TIMED_OUT: Record<string, string> & { answer: string } = {
  dns: 'DNS did not answer in time. Check the DNS records of the host.',
  connect: 'The server did not accept a connection within 10 seconds. Check the port and the firewall.',
  tls: 'The server did not complete the TLS handshake within 10 seconds.',
  answer:
    'The endpoint did not answer within 10 seconds. Answer with a status from 200 to 299 at once, and do slow work afterwards.',
}

const STATUS: Record<number, string> = {
  401: 'It asks for credentials: it must know the signing secret of this source, to accept a valid X-Service-Token.',
  403: 'It forbids the request: check its access rules, and that it knows the signing secret of this source.',
  404: 'Nothing is at this path: check the path of the URL.',
  405: 'It does not accept POST at this path.',
  413: 'It refuses a body of this size.',
  415: 'It does not accept application/json.',
}
const TYPE = 'The request has the type service.webhook.verification: answer it before you read anything else.'
const RULE = 'It must answer with a status from 200 to 299 within 10 seconds. Fix it, then verify again.'

/** The next step after a status that refuses the verification; undefined for a redirect, which names its target. */
export function hintOfStatus(status: number): string | undefined {
  if (status >= 300 && status < 400) return undefined
  return status >= 500 ? RULE : `${STATUS[status] ?? TYPE} ${RULE}`
}

/** What the endpoint answered: the status, and the beginning of the text. */
export function describeStatus(status: number, answer: string | null | undefined): string {
  const quoted = quote(answer)
  const end = /[.!?…]”$/.test(quoted) ? '' : '.'
  return `Your endpoint answered ${status}${status >= 500 ? ', an error on its side' : ''}${quoted && `: ${quoted}`}${end}`
}

/** Says in plain words why the endpoint did not confirm, and the next step (contract README, "Webhook sources"). */
export function describeVerificationFailure(error: Partial<AppErrorBody>): string {
  const { status = 0, location, kind, tls_fault: tlsFault = 'other', address = 'The address of this host' } = error
  switch (error.reason) {
    case 'status':
      return `${describeStatus(status, error.rejected_answer)} ${hintOfStatus(status) ?? RULE}`
    case 'redirect':
      return location
        ? `The endpoint redirects to ${location} (${status}). Redirects are not followed: enter the final URL.`
        : `The endpoint answered with a redirect (${status}) without a target. Enter the final URL.`
    case 'timed_out':
      return TIMED_OUT[kind ?? ''] ?? TIMED_OUT.answer
    case 'unreachable':
      return kind === 'tls' ? (TLS[tlsFault] ?? TLS.other) : (UNREACHABLE[kind ?? ''] ?? UNREACHABLE.other)
    case 'url_not_public':
      return `${address} is private: the internet cannot reach it. Enter a public URL, such as that of a tunnel.`
    case undefined:
      return error.message ?? 'The endpoint did not confirm.'
    default:
      return error.reason satisfies never
  }
}

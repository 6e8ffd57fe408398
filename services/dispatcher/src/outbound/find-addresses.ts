import { checkAddress } from './check-address.ts'
import type { UrlHost } from './check-url.ts'
import type { Result } from './open-connection.ts'
import { type OutboundOutcome, unreachableOutcome } from './outbound-result.ts'
import type { Subnets } from './parse-subnets.ts'
import type { NameResolver } from './resolver.ts'

/** Returns the addresses of a host if all of them may be connected to, else the outcome of the request. */
export async function findAddresses(
  host: UrlHost,
  { resolver, allowed }: { resolver: NameResolver; allowed: Subnets },
  signal: AbortSignal,
): Promise<Result<string[]>> {
  if (host.kind === 'address') return { ok: true, value: [host.address] }
  if (host.kind === 'loopbackName') return findLoopback(host.name, allowed)
  const resolution = await resolver.resolve(host.name, signal)
  if (!resolution.ok) {
    const { cause, detail } = resolution
    return {
      ok: false,
      outcome: cause === 'unavailable' ? { kind: cause, detail } : unreachableOutcome(cause, false, detail),
    }
  }
  for (const address of resolution.addresses) {
    const check = checkAddress(address, allowed)
    if (!check.isAllowed) return { ok: false, outcome: refusedName(host.name, check.detail) }
  }
  return { ok: true, value: resolution.addresses }
}

/** `localhost` is never looked up in DNS (RFC 6761): it means the loopback addresses that are allowed. */
function findLoopback(name: string, allowed: Subnets): Result<string[]> {
  const loopback = ['127.0.0.1', '::1'].filter((address) => checkAddress(address, allowed).isAllowed)
  if (loopback.length > 0) return { ok: true, value: loopback }
  return { ok: false, outcome: refusedName(name, 'loopback is not in WEBHOOK_ALLOWED_SUBNETS') }
}

function refusedName(name: string, why: string): OutboundOutcome {
  const detail = `the address of ${name} is not publicly reachable`
  return { kind: 'refused', code: 'url_not_public', address: null, detail, internalDetail: `${name}: ${why}` }
}

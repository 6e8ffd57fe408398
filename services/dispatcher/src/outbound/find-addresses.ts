import { isIP } from 'node:net'
import { findAddressError } from './find-address-error.ts'
import type { Result } from './open-connection.ts'
import { type OutboundOutcome, unreachableOutcome } from './outbound-result.ts'
import type { Subnets } from './parse-subnets.ts'
import type { NameResolver } from './resolver.ts'

/** Returns the addresses of a checked URL's host if all of them may be connected to, else the request's outcome. */
export async function findAddresses(
  host: string,
  { resolver, allowed }: { resolver: NameResolver; allowed: Subnets },
  signal: AbortSignal,
): Promise<Result<string[]>> {
  if (isIP(host) !== 0) return { ok: true, value: [host] }
  if (/(?:^|\.)localhost$/.test(host)) return findLoopback(host, allowed)
  const resolution = await resolver.resolve(host, signal)
  if (!resolution.ok) {
    const { cause, detail } = resolution
    return {
      ok: false,
      outcome: cause === 'unavailable' ? { kind: cause, detail } : unreachableOutcome(cause, detail),
    }
  }
  for (const address of resolution.addresses) {
    const error = findAddressError(address, allowed)
    if (error !== undefined) return { ok: false, outcome: refusedName(host, error) }
  }
  return { ok: true, value: resolution.addresses }
}

/** `localhost` is never looked up in DNS (RFC 6761): it means the loopback addresses that are allowed. */
function findLoopback(name: string, allowed: Subnets): Result<string[]> {
  const loopback = ['127.0.0.1', '::1'].filter((address) => findAddressError(address, allowed) === undefined)
  if (loopback.length > 0) return { ok: true, value: loopback }
  return { ok: false, outcome: refusedName(name, 'loopback is not in WEBHOOK_ALLOWED_SUBNETS') }
}

function refusedName(name: string, why: string): OutboundOutcome {
  const detail = `the address of ${name} is not publicly reachable`
  return { kind: 'refused', address: null, detail, internalDetail: `${name}: ${why}` }
}

import { isIP } from 'node:net'
import { findAddressError } from './find-address-error.ts'
import type { UnansweredOutcome } from './outbound-result.ts'
import type { Subnets } from './parse-subnets.ts'
import type { NameResolver } from './resolver.ts'

/** Returns the addresses of a checked URL's host if all of them may be connected to, else the request's outcome. */
export async function findAddresses(
  host: string,
  { resolver, allowed }: { resolver: NameResolver; allowed: Subnets },
  signal: AbortSignal,
): Promise<string[] | UnansweredOutcome> {
  if (isIP(host) !== 0) return [host]
  if (/(?:^|\.)localhost$/.test(host)) return findLoopback(host, allowed)
  const addresses = await resolver.resolve(host, signal)
  if (!Array.isArray(addresses)) return addresses
  for (const address of addresses) {
    const error = findAddressError(address, allowed)
    if (error !== undefined) return refusedName(host, error)
  }
  return addresses
}

/** `localhost` is never looked up in DNS (RFC 6761): it means the loopback addresses that are allowed. */
function findLoopback(name: string, allowed: Subnets): string[] | UnansweredOutcome {
  const loopback = ['127.0.0.1', '::1'].filter((address) => findAddressError(address, allowed) === undefined)
  return loopback.length > 0 ? loopback : refusedName(name, 'loopback is not in WEBHOOK_ALLOWED_SUBNETS')
}

function refusedName(name: string, why: string): UnansweredOutcome {
  const detail = `the address of ${name} is not publicly reachable`
  return { kind: 'refused', detail, internalDetail: `${name}: ${why}` }
}

import { networkInterfaces } from 'node:os'
import { findSpecialRange } from './find-special-range.ts'
import { NO_SUBNETS, type Subnets } from './parse-subnets.ts'

/**
 * Returns why no request may go to this address, as part of a sentence that may be shown, or undefined if it may.
 * Allowed are addresses in `allowed`, and public addresses that do not belong to this machine: a connection to an own
 * address would go over loopback and bypass every firewall in front of it.
 */
export function findAddressError(
  address: string,
  allowed: Subnets = NO_SUBNETS,
  isOwnAddress: (address: string) => boolean = isAddressOfThisMachine,
): string | undefined {
  if (allowed.contains(address)) return undefined
  const special = findSpecialRange(address)
  if (special) {
    const [range, reason] = special
    return `${address} is not a public address (${reason}${range === '' ? '' : `, ${range}`})`
  }
  return isOwnAddress(address) ? ownAddressError(address) : undefined
}

/** As `findAddressError` says it of an address of this machine. */
export function ownAddressError(address: string): string {
  return `${address} is an address of the service itself`
}

const OWN_ADDRESSES_MAX_AGE_MS = 10_000
const own = { addresses: new Set<string>(), readAtMs: -Infinity }

/**
 * Reads the interfaces again after 10 s: they change when a container joins a network. Not named are new addresses and
 * those of an interface without a carrier: `openConnection` refuses them.
 */
function isAddressOfThisMachine(address: string): boolean {
  const nowMs = performance.now()
  if (nowMs - own.readAtMs > OWN_ADDRESSES_MAX_AGE_MS) {
    const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
    own.addresses = new Set(interfaces.map((entry) => entry.address))
    own.readAtMs = nowMs
  }
  return own.addresses.has(address)
}

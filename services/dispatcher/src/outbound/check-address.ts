import { networkInterfaces } from 'node:os'
import { classifyAddress } from './classify-address.ts'
import { NO_SUBNETS, type Subnets } from './parse-subnets.ts'

/** `detail` is a sentence part that may be shown: the address, its range and what that range is for. */
export type AddressCheck = { isAllowed: true } | { isAllowed: false; address: string; detail: string }

/**
 * Says whether a request may go to this address. Allowed are addresses in `allowed`, and public addresses that do not
 * belong to this machine: a connection to an own address would go over loopback and bypass every firewall in front of
 * it.
 */
export function checkAddress(
  address: string,
  allowed: Subnets = NO_SUBNETS,
  isOwnAddress: (address: string) => boolean = isAddressOfThisMachine,
): AddressCheck {
  if (allowed.contains(address)) return { isAllowed: true }
  const found = classifyAddress(address)
  if (!found.isPublic) {
    const range = found.range === '' ? '' : `, ${found.range}`
    return { isAllowed: false, address, detail: `${address} is not a public address (${found.reason}${range})` }
  }
  if (isOwnAddress(address)) {
    return { isAllowed: false, address, detail: `${address} is an address of the service itself` }
  }
  return { isAllowed: true }
}

const OWN_ADDRESSES_MAX_AGE_MS = 10_000
const own = { addresses: new Set<string>(), readAtMs: -Infinity }

/** Reads the interfaces again after 10 s: they change when a container joins a network. One read takes 50 µs. */
function isAddressOfThisMachine(address: string): boolean {
  const nowMs = performance.now()
  if (nowMs - own.readAtMs > OWN_ADDRESSES_MAX_AGE_MS) {
    const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
    own.addresses = new Set(interfaces.map((entry) => entry.address))
    own.readAtMs = nowMs
  }
  return own.addresses.has(address)
}

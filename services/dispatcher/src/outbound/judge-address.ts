import { networkInterfaces } from 'node:os'
import { classifyAddress } from './classify-address.ts'
import { noSubnets } from './parse-subnets.ts'
import type { Subnets } from './parse-subnets.ts'

/** `detail` is one sentence part for people: the address, its range and what that range is for. */
export type AddressJudgement = { permitted: true } | { permitted: false; address: string; detail: string }

/**
 * Says whether a request may go to this address: what lies in `allowed` may, and what is public and not one of this
 * machine's own addresses. A public address of this machine is reached over loopback, past every firewall before it.
 */
export function judgeAddress(
  address: string,
  allowed: Subnets = noSubnets,
  isOwnAddress: (address: string) => boolean = isAddressOfThisMachine,
): AddressJudgement {
  if (allowed.contains(address)) return { permitted: true }
  const verdict = classifyAddress(address)
  if (!verdict.public) {
    const range = verdict.range === '' ? '' : `, ${verdict.range}`
    return { permitted: false, address, detail: `${address} is not a public address (${verdict.reason}${range})` }
  }
  if (isOwnAddress(address)) {
    return { permitted: false, address, detail: `${address} is an address of the service itself` }
  }
  return { permitted: true }
}

const ownAddressesMaxAgeMs = 10_000
const own = { addresses: new Set<string>(), readAtMs: -Infinity }

/** The interfaces are read anew every 10 s: they change when a container joins a network, and reading costs 50 µs. */
function isAddressOfThisMachine(address: string): boolean {
  const nowMs = performance.now()
  if (nowMs - own.readAtMs > ownAddressesMaxAgeMs) {
    const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
    own.addresses = new Set(interfaces.map((entry) => entry.address))
    own.readAtMs = nowMs
  }
  return own.addresses.has(address)
}

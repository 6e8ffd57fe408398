import { BlockList, isIP, SocketAddress } from 'node:net'
import { GLOBAL_UNICAST_IPV6, SPECIAL_IPV4, SPECIAL_IPV6, type SpecialRange } from './special-addresses.ts'

/**
 * `range` is the CIDR block for which the address was refused (empty if it is no address), `reason` its name in words.
 */
export type AddressClass = { isPublic: true } | { isPublic: false; range: string; reason: string }

/**
 * Says whether an address is reachable from the whole Internet. Takes one canonical address without brackets or zone;
 * any other text is not public. Pure: the answer depends on no setting and no DNS look-up.
 */
export function classifyAddress(address: string): AddressClass {
  // BlockList.check() returns false for an address of the wrong family, so the family is read from the address itself.
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return { isPublic: false, range: '', reason: 'not an IP address' }
  if (family === 4) {
    const ipv4 = new SocketAddress({ address })
    return REFUSED_IPV4.check(ipv4) ? notPublic(SPECIAL_IPV4, ipv4) : { isPublic: true }
  }
  const ipv6 = new SocketAddress({ address, family: 'ipv6' })
  const isPublic = GLOBAL_UNICAST.check(ipv6) && !REFUSED_IPV6.check(ipv6)
  return isPublic ? { isPublic } : notPublic(SPECIAL_IPV6, ipv6)
}

function notPublic(ranges: readonly SpecialRange[], address: SocketAddress): AddressClass {
  const [range, reason] = ranges.find(([cidr]) => toBlockList([cidr]).check(address)) ?? [
    `outside ${GLOBAL_UNICAST_IPV6}`,
    'not allocated',
  ]
  return { isPublic: false, range, reason }
}

function toBlockList(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', prefix] = cidr.split('/')
    list.addSubnet(network, Number(prefix), network.includes(':') ? 'ipv6' : 'ipv4')
  }
  return list
}

const REFUSED_IPV4 = toBlockList(SPECIAL_IPV4.map(([cidr]) => cidr))
const REFUSED_IPV6 = toBlockList(SPECIAL_IPV6.map(([cidr]) => cidr))
const GLOBAL_UNICAST = toBlockList([GLOBAL_UNICAST_IPV6])

import { BlockList, isIP, SocketAddress } from 'node:net'
import { GLOBAL_UNICAST_IPV6, SPECIAL_IPV4, SPECIAL_IPV6, type SpecialRange } from './special-addresses.ts'

/**
 * Returns the range for which an address is not reachable from the whole Internet, or undefined if it is. Takes one
 * canonical address without brackets or zone; any other text is in a range without a name. Pure: the answer depends on
 * no setting and no DNS look-up.
 */
export function findSpecialRange(address: string): SpecialRange | undefined {
  // BlockList.check() returns false for an address of the wrong family, so the family is read from the address itself.
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return ['', 'not an IP address']
  if (family === 4) {
    const ipv4 = new SocketAddress({ address })
    return REFUSED_IPV4.check(ipv4) ? narrowestRange(SPECIAL_IPV4, ipv4) : undefined
  }
  const ipv6 = new SocketAddress({ address, family: 'ipv6' })
  const isPublic = GLOBAL_UNICAST.check(ipv6) && !REFUSED_IPV6.check(ipv6)
  return isPublic ? undefined : narrowestRange(SPECIAL_IPV6, ipv6)
}

function narrowestRange(ranges: readonly SpecialRange[], address: SocketAddress): SpecialRange {
  const found = ranges.find(([cidr]) => toBlockList([cidr]).check(address))
  return found ?? [`outside ${GLOBAL_UNICAST_IPV6}`, 'not allocated']
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

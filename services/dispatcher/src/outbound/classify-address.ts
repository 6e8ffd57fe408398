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
  if (family === 4) return classifyIpv4(new SocketAddress({ address, family: 'ipv4' }))
  if (family === 6 && !address.includes('%')) return classifyIpv6(new SocketAddress({ address, family: 'ipv6' }))
  return { isPublic: false, range: '', reason: 'not an IP address' }
}

function classifyIpv4(address: SocketAddress): AddressClass {
  return IPV4_RANGES.all.check(address) ? notPublic(IPV4_RANGES, address) : { isPublic: true }
}

function classifyIpv6(address: SocketAddress): AddressClass {
  if (!GLOBAL_UNICAST.check(address) || IPV6_RANGES.all.check(address)) return notPublic(IPV6_RANGES, address)
  return { isPublic: true }
}

function notPublic(ranges: Ranges, address: SocketAddress): AddressClass {
  const found = ranges.rows.find((candidate) => candidate.list.check(address))
  if (found === undefined) {
    return { isPublic: false, range: `outside ${GLOBAL_UNICAST_IPV6}`, reason: 'not allocated' }
  }
  return { isPublic: false, range: found.range.cidr, reason: found.range.reason }
}

/** `all` answers in one look-up; `rows`, in the table's order, names the range. */
interface Ranges {
  all: BlockList
  rows: { range: SpecialRange; list: BlockList }[]
}

function toRanges(table: readonly SpecialRange[], family: 'ipv4' | 'ipv6'): Ranges {
  const cidrs = table.map(({ cidr }) => cidr)
  return {
    all: toBlockList(cidrs, family),
    rows: table.map((range) => ({ range, list: toBlockList([range.cidr], family) })),
  }
}

function toBlockList(cidrs: string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', prefix] = cidr.split('/')
    list.addSubnet(network, Number(prefix), family)
  }
  return list
}

const IPV4_RANGES = toRanges(SPECIAL_IPV4, 'ipv4')
const IPV6_RANGES = toRanges(SPECIAL_IPV6, 'ipv6')
const GLOBAL_UNICAST = toBlockList([GLOBAL_UNICAST_IPV6], 'ipv6')

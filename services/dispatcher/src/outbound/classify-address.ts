import { BlockList, isIP, SocketAddress } from 'node:net'
import { globalUnicastIpv6, specialIpv4, specialIpv6 } from './special-addresses.ts'
import type { SpecialRange } from './special-addresses.ts'

/** `range` is the CIDR that condemned the address, `reason` its name in words. */
export type AddressVerdict = { public: true } | { public: false; range: string; reason: string }

/**
 * Says whether an address is reachable from the whole Internet. Takes one canonical address without brackets or zone;
 * whatever is no such address is not public. Pure: no setting and no look-up changes its answer.
 */
export function classifyAddress(address: string): AddressVerdict {
  // BlockList answers "not listed" when it is asked with the wrong family, so the family comes from the address alone.
  const family = isIP(address)
  if (family === 4) return ipv4Verdict(new SocketAddress({ address, family: 'ipv4' }))
  if (family === 6 && !address.includes('%')) return ipv6Verdict(new SocketAddress({ address, family: 'ipv6' }))
  return { public: false, range: '', reason: 'not an IP address' }
}

function ipv4Verdict(address: SocketAddress): AddressVerdict {
  return ipv4Ranges.all.check(address) ? condemned(ipv4Ranges, address) : { public: true }
}

function ipv6Verdict(address: SocketAddress): AddressVerdict {
  if (!globalUnicast.check(address) || ipv6Ranges.all.check(address)) return condemned(ipv6Ranges, address)
  return { public: true }
}

function condemned(ranges: Ranges, address: SocketAddress): AddressVerdict {
  const found = ranges.rows.find((candidate) => candidate.list.check(address))
  if (found === undefined) return { public: false, range: `outside ${globalUnicastIpv6}`, reason: 'not allocated' }
  return { public: false, range: found.range.cidr, reason: found.range.reason }
}

type Ranges = { all: BlockList; rows: { range: SpecialRange; list: BlockList }[] }

function toRanges(table: readonly SpecialRange[], family: 'ipv4' | 'ipv6'): Ranges {
  return {
    all: toBlockList(
      table.map(({ cidr }) => cidr),
      family,
    ),
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

const ipv4Ranges = toRanges(specialIpv4, 'ipv4')
const ipv6Ranges = toRanges(specialIpv6, 'ipv6')
const globalUnicast = toBlockList([globalUnicastIpv6], 'ipv6')

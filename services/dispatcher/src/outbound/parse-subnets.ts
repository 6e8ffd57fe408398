import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** A set of subnets. An IPv4 address is never in an IPv6 subnet, and the other way around: see `parseSubnets`. */
export interface Subnets {
  readonly cidrs: readonly string[]
  contains(address: string): boolean
}

/**
 * Reads `WEBHOOK_ALLOWED_SUBNETS`: CIDR blocks or single addresses of either family, separated by commas or spaces.
 * Allows exactly what it names: an IPv4 subnet does not allow the IPv6 spellings of its addresses.
 * @throws Error whose message names all invalid entries at once and what to write instead.
 */
export function parseSubnets(text: string): Subnets {
  // One list per family: BlockList finds the IPv6 spelling ::ffff:127.0.0.1 in the IPv4 subnet 127.0.0.0/8.
  const lists = new Map([4, 6].map((family) => [family, new BlockList()]))
  const entries = text.split(/[\s,]+/u).filter(Boolean)
  const cidrs = entries.map((entry) => (entry.includes('/') ? entry : `${entry}/${isIP(entry) === 4 ? 32 : 128}`))
  const invalid = entries.filter((_, index) => !isSubnet(cidrs[index]!))
  if (invalid.length > 0) {
    const named = invalid.map((entry) => `"${entry}"`).join(', ')
    const remedy = 'write addresses, or the first address of a block with its prefix, such as 10.0.0.0/8'
    throw new Error(`is not a list of subnets: ${named}; ${remedy}`)
  }
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/')
    const family = isIP(address)
    lists.get(family)?.addSubnet(address, Number(prefix), family === 4 ? 'ipv4' : 'ipv6')
  }
  return {
    cidrs,
    contains(address) {
      const family = isIP(address)
      return !address.includes('%') && (lists.get(family)?.check(address, family === 4 ? 'ipv4' : 'ipv6') ?? false)
    },
  }
}

/** Allows no address beyond the public ones: the default. */
export const NO_SUBNETS: Subnets = parseSubnets('')

/** Whether it has no bits beyond its prefix. */
function isSubnet(cidr: string): boolean {
  const [address = ''] = cidr.split('/')
  // ipaddr.js also accepts 127.1, 0177.0.0.1 and zones, and reads ::1.2.3.4 as ::ffff:1.2.3.4.
  if (isIP(address) === 0 || /%|:.*\./u.test(address) || !ipaddr.isValidCIDR(cidr)) return false
  const ip = isIP(address) === 4 ? ipaddr.IPv4 : ipaddr.IPv6
  return ip.networkAddressFromCIDR(cidr).toString() === ipaddr.parse(address).toString()
}

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
  const ipv4 = new BlockList()
  const ipv6 = new BlockList()
  const cidrs: string[] = []
  const errors: string[] = []
  for (const entry of text.split(/[\s,]+/u).filter((part) => part !== '')) {
    const subnet = readSubnet(entry)
    if ('error' in subnet) {
      errors.push(subnet.error)
    } else {
      if (subnet.family === 4) ipv4.addSubnet(subnet.address, subnet.prefix, 'ipv4')
      else ipv6.addSubnet(subnet.address, subnet.prefix, 'ipv6')
      cidrs.push(`${subnet.address}/${subnet.prefix}`)
    }
  }
  if (errors.length > 0) throw new Error(`is not a list of subnets: ${errors.join('; ')}`)
  return {
    cidrs,
    contains(address) {
      const family = isIP(address)
      if (family === 4) return ipv4.check(address, 'ipv4')
      return family === 6 && !address.includes('%') && ipv6.check(address, 'ipv6')
    },
  }
}

/** Allows no address beyond the public ones: the default. */
export const NO_SUBNETS: Subnets = parseSubnets('')

function readSubnet(entry: string): { address: string; prefix: number; family: number } | { error: string } {
  const [address = '', prefixText, ...rest] = entry.split('/')
  // Checked before ipaddr.js reads it, because ipaddr.js also accepts 127.1 and 0177.0.0.1.
  const family = address.includes('%') ? 0 : isIP(address)
  if (family === 0 || rest.length > 0) return { error: `"${entry}" is not a CIDR block` }
  const maxPrefix = family === 4 ? 32 : 128
  const prefix = prefixText === undefined ? maxPrefix : Number(prefixText)
  if (prefixText !== undefined && (!/^(?:0|[1-9]\d{0,2})$/u.test(prefixText) || prefix > maxPrefix)) {
    return { error: `"${entry}" needs a prefix length from 0 to ${maxPrefix} after the slash` }
  }
  // The URL parser writes IPv6 in hexadecimal groups only: ipaddr.js would read ::1.2.3.4 as ::ffff:1.2.3.4.
  const canonical = family === 4 ? address : new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const ip = family === 4 ? ipaddr.IPv4 : ipaddr.IPv6
  const network = ip.networkAddressFromCIDR(`${canonical}/${prefix}`).toString()
  if (network !== ipaddr.parse(canonical).toString()) {
    return { error: `"${entry}" has bits set beyond its prefix: write ${network}/${prefix} or ${address}` }
  }
  return { address, prefix, family }
}

import { BlockList, isIP, isIPv4 } from 'node:net'

/** A set of subnets that knows whether an address lies in it. Families never mix: see `parseSubnets`. */
export type Subnets = {
  readonly cidrs: readonly string[]
  contains(address: string): boolean
}

/** The list cannot be read; the message names each entry at fault and what to write instead. */
export class SubnetSyntaxError extends Error {
  override name = 'SubnetSyntaxError'
}

/**
 * Reads `WEBHOOK_ALLOWED_SUBNETS`: CIDR blocks or single addresses of either family, separated by commas or spaces.
 * Opens exactly what it names: an IPv4 subnet is not opened by an IPv6 spelling of its addresses.
 * Throws `SubnetSyntaxError` that names all faulty entries at once.
 */
export function parseSubnets(text: string): Subnets {
  const lists = { 4: new BlockList(), 6: new BlockList() }
  const cidrs: string[] = []
  const faults: string[] = []
  for (const entry of text.split(/[\s,]+/u).filter((part) => part !== '')) {
    const read = readSubnet(entry)
    if (typeof read === 'string') {
      faults.push(read)
      continue
    }
    const family = isIPv4(read.network) ? 'ipv4' : 'ipv6'
    lists[family === 'ipv4' ? 4 : 6].addSubnet(read.network, read.prefix, family)
    cidrs.push(`${read.network}/${read.prefix}`)
  }
  if (faults.length > 0) throw new SubnetSyntaxError(`is not a list of subnets: ${faults.join('; ')}`)
  return {
    cidrs,
    contains(address) {
      const family = isIP(address)
      if (family === 4) return lists[4].check(address, 'ipv4')
      return family === 6 && !address.includes('%') && lists[6].check(address, 'ipv6')
    },
  }
}

/** Nothing is allowed beyond what is public: the default. */
export const noSubnets: Subnets = parseSubnets('')

function readSubnet(entry: string): { network: string; prefix: number } | string {
  const [network = '', prefixText, ...rest] = entry.split('/')
  const family = network.includes('%') ? 0 : isIP(network)
  if (family === 0 || rest.length > 0) return `"${entry}" is no CIDR block`
  const longest = family === 4 ? 32 : 128
  if (prefixText === undefined) return { network, prefix: longest }
  if (!/^(?:0|[1-9]\d{0,2})$/u.test(prefixText) || Number(prefixText) > longest) {
    return `"${entry}" needs a prefix length from 0 to ${longest} after the slash`
  }
  const prefix = Number(prefixText)
  const bits = toBits(network)
  const mask = ((1n << BigInt(prefix)) - 1n) << BigInt(longest - prefix)
  if ((bits & mask) !== bits) {
    return `"${entry}" has bits set beyond its prefix: write ${fromBits(bits & mask, family)}/${prefix} or ${network}`
  }
  return { network, prefix }
}

/** The address as one number. Takes what `isIP` accepts. */
function toBits(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, octet) => (sum << 8n) + BigInt(octet), 0n)
  // The parser of URLs writes every IPv6 address as at most eight hexadecimal groups.
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  return [...front, ...zeros, ...back].reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n)
}

function fromBits(bits: bigint, family: number): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.')
  const groups = Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16))
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1)
}

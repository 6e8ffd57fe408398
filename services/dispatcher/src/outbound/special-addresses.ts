/**
 * A block of addresses to which no webhook may be sent. `isGloballyReachable` is the registry's column; the service
 * refuses those blocks as well.
 */
export interface SpecialRange {
  cidr: string
  reason: string
  isGloballyReachable: boolean
}

const row = (cidr: string, reason: string, isGloballyReachable = false): SpecialRange => ({
  cidr,
  reason,
  isGloballyReachable,
})

/**
 * Every row of the IANA IPv4 Special-Purpose Address Registry (RFC 6890) as of 2026-07-18, then blocks that the
 * registry does not list. A narrow block comes before the wide one that contains it, so that the first match is the
 * most precise.
 */
export const SPECIAL_IPV4: readonly SpecialRange[] = [
  row('0.0.0.0/32', 'this host'),
  row('0.0.0.0/8', 'this network'),
  row('10.0.0.0/8', 'private network'),
  row('100.100.100.200/32', 'cloud metadata'),
  row('100.64.0.0/10', 'shared address space of carriers'),
  row('127.0.0.0/8', 'loopback'),
  row('169.254.169.254/32', 'cloud metadata'),
  row('169.254.0.0/16', 'link-local'),
  row('172.16.0.0/12', 'private network'),
  row('192.0.0.0/29', 'IPv4 service continuity'),
  row('192.0.0.8/32', 'IPv4 dummy address'),
  row('192.0.0.9/32', 'port control protocol anycast', true),
  row('192.0.0.10/32', 'TURN anycast', true),
  row('192.0.0.170/32', 'NAT64 discovery'),
  row('192.0.0.171/32', 'NAT64 discovery'),
  row('192.0.0.0/24', 'IETF protocol assignments'),
  row('192.0.2.0/24', 'documentation'),
  row('192.31.196.0/24', 'AS112 anycast', true),
  row('192.52.193.0/24', 'AMT relay anycast', true),
  row('192.88.99.2/32', '6a44 relay anycast'),
  row('192.88.99.0/24', '6to4 relay anycast'),
  row('192.168.0.0/16', 'private network'),
  row('192.175.48.0/24', 'AS112 anycast', true),
  row('198.18.0.0/15', 'benchmarking'),
  row('198.51.100.0/24', 'documentation'),
  row('203.0.113.0/24', 'documentation'),
  row('255.255.255.255/32', 'limited broadcast'),
  row('240.0.0.0/4', 'reserved'),
  // Not in the registry.
  row('224.0.0.0/4', 'multicast'),
  row('168.63.129.16/32', 'cloud metadata'),
]

/**
 * The only IPv6 range with public addresses: everything outside it is refused, so a new registry row needs no change
 * here.
 */
export const GLOBAL_UNICAST_IPV6 = '2000::/3'

/**
 * Every row of the IANA IPv6 Special-Purpose Address Registry as of 2026-07-18, then blocks that the registry does not
 * list. Rows outside 2000::/3 only give the reason its name. A block that embeds IPv4 addresses is refused as a whole:
 * the embedded address is never looked at.
 */
export const SPECIAL_IPV6: readonly SpecialRange[] = [
  row('::1/128', 'loopback'),
  row('::/128', 'unspecified address'),
  row('::ffff:0:0/96', 'IPv4-mapped address'),
  row('64:ff9b::/96', 'IPv4 in IPv6 (NAT64)', true),
  row('64:ff9b:1::/48', 'IPv4 in IPv6 (local NAT64)'),
  row('100::/64', 'discard-only'),
  row('100:0:0:1::/64', 'dummy prefix'),
  row('2001::/32', 'IPv4 in IPv6 (Teredo)'),
  row('2001:1::1/128', 'port control protocol anycast', true),
  row('2001:1::2/128', 'TURN anycast', true),
  row('2001:1::3/128', 'DNS-SD anycast', true),
  row('2001:2::/48', 'benchmarking'),
  row('2001:3::/32', 'AMT relay anycast', true),
  row('2001:4:112::/48', 'AS112 anycast', true),
  row('2001:10::/28', 'ORCHID'),
  row('2001:20::/28', 'ORCHIDv2', true),
  row('2001:30::/28', 'drone remote identification', true),
  row('2001::/23', 'IETF protocol assignments'),
  row('2001:db8::/32', 'documentation'),
  row('2002::/16', 'IPv4 in IPv6 (6to4)'),
  row('2620:4f:8000::/48', 'AS112 anycast', true),
  row('3fff::/20', 'documentation'),
  row('5f00::/16', 'segment routing'),
  row('fd00:ec2::254/128', 'cloud metadata'),
  row('fd20:ce::254/128', 'cloud metadata'),
  row('fc00::/7', 'private network'),
  row('fe80::/10', 'link-local'),
  // Not in the registry.
  row('::ffff:0:0:0/96', 'IPv4 in IPv6 (translated)'),
  row('::/96', 'IPv4 in IPv6 (compatible)'),
  row('fec0::/10', 'site-local'),
  row('ff00::/8', 'multicast'),
]

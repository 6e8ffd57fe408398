/** A block of addresses to which no webhook may be sent, and what it is for. */
export type SpecialRange = readonly [cidr: string, reason: string]

/**
 * The IANA IPv4 Special-Purpose Address Registry (RFC 6890) as of 2026-07-18, without the rows inside 192.0.0.0/24 and
 * 192.88.99.0/24, which are refused as a whole, then blocks that the registry does not list. A narrow block precedes
 * the wide one that contains it, so that the first match is the most precise.
 */
export const SPECIAL_IPV4: readonly SpecialRange[] = [
  ['0.0.0.0/32', 'this host'],
  ['0.0.0.0/8', 'this network'],
  ['10.0.0.0/8', 'private network'],
  ['100.100.100.200/32', 'cloud metadata'],
  ['100.64.0.0/10', 'shared address space of carriers'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.169.254/32', 'cloud metadata'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private network'],
  ['192.0.0.0/24', 'IETF protocol assignments'],
  ['192.0.2.0/24', 'documentation'],
  ['192.31.196.0/24', 'AS112 anycast'],
  ['192.52.193.0/24', 'AMT relay anycast'],
  ['192.88.99.0/24', '6to4 relay anycast'],
  ['192.168.0.0/16', 'private network'],
  ['192.175.48.0/24', 'AS112 anycast'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['255.255.255.255/32', 'limited broadcast'],
  ['240.0.0.0/4', 'reserved'],
  // Not in the registry.
  ['224.0.0.0/4', 'multicast'],
  ['168.63.129.16/32', 'cloud metadata'],
]

/**
 * The only IPv6 range with public addresses: everything outside it is refused, so a new registry row needs no change
 * here.
 */
export const GLOBAL_UNICAST_IPV6 = '2000::/3'

/**
 * The IANA IPv6 Special-Purpose Address Registry as of 2026-07-18, without the rows inside 2001::/23 but Teredo's, then
 * blocks that the registry does not list. Rows outside 2000::/3 only give the reason its name. A block that embeds IPv4
 * addresses is refused as a whole: the embedded address is never looked at.
 */
export const SPECIAL_IPV6: readonly SpecialRange[] = [
  ['::1/128', 'loopback'],
  ['::/128', 'unspecified address'],
  ['::ffff:0:0/96', 'IPv4-mapped address'],
  ['64:ff9b::/96', 'IPv4 in IPv6 (NAT64)'],
  ['64:ff9b:1::/48', 'IPv4 in IPv6 (local NAT64)'],
  ['100::/64', 'discard-only'],
  ['100:0:0:1::/64', 'dummy prefix'],
  ['2001::/32', 'IPv4 in IPv6 (Teredo)'],
  ['2001::/23', 'IETF protocol assignments'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', 'IPv4 in IPv6 (6to4)'],
  ['2620:4f:8000::/48', 'AS112 anycast'],
  ['3fff::/20', 'documentation'],
  ['5f00::/16', 'segment routing'],
  ['fd00:ec2::254/128', 'cloud metadata'],
  ['fd20:ce::254/128', 'cloud metadata'],
  ['fc00::/7', 'private network'],
  ['fe80::/10', 'link-local'],
  // Not in the registry.
  ['::ffff:0:0:0/96', 'IPv4 in IPv6 (translated)'],
  ['::/96', 'IPv4 in IPv6 (compatible)'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
]

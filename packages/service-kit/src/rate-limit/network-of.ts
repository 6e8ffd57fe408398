import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Returns an IPv4 address, or the /64 of an IPv6 address, the smallest network that a subscriber gets. */
export function networkOf(address: string): string {
  // The library creates an error for '', the address of a connection that has been reset.
  if (!isIPv6(address) || !ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

import { expect, test } from '@jest/globals'
import { networkOf } from './network-of.ts'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3::4', networkOf('2001:db8:1:2::9')],
  ['', ''],
  // Node takes such a zone, the library does not.
  ['fe80::1%a-b', 'fe80::1%a-b'],
])('%p is of the network %p', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

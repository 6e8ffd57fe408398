import { expect, test } from '@jest/globals'
import { findAddressError } from './find-address-error.ts'
import { NO_SUBNETS, parseSubnets } from './parse-subnets.ts'

const isOwn = (address: string) => address === '8.8.8.8'

test("this machine's own public addresses are refused, unless their subnet is allowed", () => {
  expect(findAddressError('8.8.4.4', NO_SUBNETS, isOwn)).toBeUndefined()
  expect(findAddressError('8.8.8.8', NO_SUBNETS, isOwn)).toBe('8.8.8.8 is an address of the service itself')
  expect(findAddressError('8.8.8.8', parseSubnets('8.8.8.0/24'), isOwn)).toBeUndefined()
  expect(findAddressError('nonsense', parseSubnets('0.0.0.0/0,::/0'))).toMatch('(not an IP address)')
})

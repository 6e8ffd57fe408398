import { describe, expect, test } from '@jest/globals'
import { findAddressError } from './find-address-error.ts'
import { NO_SUBNETS, parseSubnets } from './parse-subnets.ts'

const noOwnAddress = () => false
const isOwn = (address: string) => address === '8.8.8.8'

describe('findAddressError', () => {
  test('allows public addresses, and others only in an allowed subnet', () => {
    expect(findAddressError('8.8.8.8', NO_SUBNETS, noOwnAddress)).toBeUndefined()
    expect(findAddressError('127.0.0.1', parseSubnets('127.0.0.1'), noOwnAddress)).toBeUndefined()
    expect(findAddressError('127.0.0.2', parseSubnets('127.0.0.1'), noOwnAddress)).toBe(
      '127.0.0.2 is not a public address (loopback, 127.0.0.0/8)',
    )
    expect(findAddressError('nonsense', parseSubnets('0.0.0.0/0,::/0'), noOwnAddress)).toBe(
      'nonsense is not a public address (not an IP address)',
    )
  })

  test('allows only public addresses by default', () => {
    for (const address of ['127.0.0.1', '::1']) expect(findAddressError(address)).toMatch('is not a public address')
  })

  test("refuses this machine's own public addresses, unless their subnet is allowed", () => {
    expect(findAddressError('8.8.8.8', NO_SUBNETS, isOwn)).toBe('8.8.8.8 is an address of the service itself')
    expect(findAddressError('8.8.8.8', parseSubnets('8.8.8.0/24'), isOwn)).toBeUndefined()
  })
})

import { describe, expect, test } from '@jest/globals'
import { checkAddress } from './check-address.ts'
import { NO_SUBNETS, parseSubnets } from './parse-subnets.ts'

const noOwnAddress = () => false
const isOwn = (address: string) => address === '8.8.8.8'

describe('checkAddress', () => {
  test('allows public addresses, and others only in an allowed subnet', () => {
    expect(checkAddress('8.8.8.8', NO_SUBNETS, noOwnAddress)).toEqual({ isAllowed: true })
    expect(checkAddress('127.0.0.1', parseSubnets('127.0.0.1'), noOwnAddress)).toEqual({ isAllowed: true })
    expect(checkAddress('127.0.0.2', parseSubnets('127.0.0.1'), noOwnAddress)).toEqual({
      isAllowed: false,
      address: '127.0.0.2',
      detail: '127.0.0.2 is not a public address (loopback, 127.0.0.0/8)',
    })
    expect(checkAddress('nonsense', parseSubnets('0.0.0.0/0,::/0'), noOwnAddress)).toEqual({
      isAllowed: false,
      address: 'nonsense',
      detail: 'nonsense is not a public address (not an IP address)',
    })
  })

  test('allows only public addresses by default', () => {
    expect(checkAddress('127.0.0.1')).toMatchObject({ isAllowed: false })
    expect(checkAddress('::1')).toMatchObject({ isAllowed: false })
  })

  test("refuses this machine's own public addresses, unless their subnet is allowed", () => {
    expect(checkAddress('8.8.8.8', NO_SUBNETS, isOwn)).toEqual({
      isAllowed: false,
      address: '8.8.8.8',
      detail: '8.8.8.8 is an address of the service itself',
    })
    expect(checkAddress('8.8.8.8', parseSubnets('8.8.8.0/24'), isOwn)).toEqual({ isAllowed: true })
  })
})

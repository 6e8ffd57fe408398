import { describe, expect, test } from '@jest/globals'
import { judgeAddress } from './judge-address.ts'
import { noSubnets, parseSubnets } from './parse-subnets.ts'

const none = () => false
const own = (address: string) => address === '8.8.8.8'

describe('judgeAddress', () => {
  test('permits public addresses, and others only inside an allowed subnet', () => {
    expect(judgeAddress('8.8.8.8', noSubnets, none)).toEqual({ permitted: true })
    expect(judgeAddress('127.0.0.1', parseSubnets('127.0.0.1'), none)).toEqual({ permitted: true })
    expect(judgeAddress('127.0.0.2', parseSubnets('127.0.0.1'), none)).toEqual({
      permitted: false,
      address: '127.0.0.2',
      detail: '127.0.0.2 is not a public address (loopback, 127.0.0.0/8)',
    })
    expect(judgeAddress('nonsense', parseSubnets('0.0.0.0/0,::/0'), none)).toEqual({
      permitted: false,
      address: 'nonsense',
      detail: 'nonsense is not a public address (not an IP address)',
    })
  })

  test('allows nothing beyond what is public unless told', () => {
    expect(judgeAddress('127.0.0.1')).toMatchObject({ permitted: false })
    expect(judgeAddress('::1')).toMatchObject({ permitted: false })
  })

  test("refuses this machine's own public addresses, unless their subnet is allowed", () => {
    expect(judgeAddress('8.8.8.8', noSubnets, own)).toEqual({
      permitted: false,
      address: '8.8.8.8',
      detail: '8.8.8.8 is an address of the service itself',
    })
    expect(judgeAddress('8.8.8.8', parseSubnets('8.8.8.0/24'), own)).toEqual({ permitted: true })
  })
})

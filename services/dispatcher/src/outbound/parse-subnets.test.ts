import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { parseSubnets } from './parse-subnets.ts'

describe('parseSubnets', () => {
  test.each(['', '  ', ',', ' , ,\n'])('reads %j as no subnet', (text) => {
    expect(parseSubnets(text).cidrs).toEqual([])
    expect(parseSubnets(text).contains('127.0.0.1')).toBe(false)
  })

  test('reads blocks and single addresses of both families, separated by commas or spaces', () => {
    const subnets = parseSubnets(' 127.0.0.0/8, 10.1.2.3,fd00::/8\n::1 ')
    expect(subnets.cidrs).toEqual(['127.0.0.0/8', '10.1.2.3/32', 'fd00::/8', '::1/128'])
  })

  test('reads IPv6 blocks with a dotted part', () => {
    expect(parseSubnets('::0.0.0.0/64').contains('::1')).toBe(true)
    expect(parseSubnets('::ffff:127.0.0.0/104').contains('::ffff:7f00:1')).toBe(true)
    expect(parseSubnets('::127.0.0.0/104').contains('::ffff:7f00:1')).toBe(false)
  })

  test('contains exactly the addresses of the blocks', () => {
    const subnets = parseSubnets('10.1.0.0/16,192.168.7.7,fd12:3456::/32,::1')
    const inside = ['10.1.0.0', '10.1.255.255', '192.168.7.7', 'fd12:3456::', 'fd12:3456:ffff::1', '::1']
    const outside = [
      '10.0.255.255',
      '10.2.0.0',
      '192.168.7.6',
      '192.168.7.8',
      'fd12:3457::',
      'fd12:3455::1',
      '::2',
      '::',
    ]
    expect(inside.filter((address) => !subnets.contains(address))).toEqual([])
    expect(outside.filter((address) => subnets.contains(address))).toEqual([])
  })

  test('does not contain the IPv6 spellings of the addresses of an IPv4 subnet', () => {
    const subnets = parseSubnets('127.0.0.0/8,0.0.0.0/0')
    for (const address of ['::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '::ffff:7f00:1']) {
      expect(subnets.contains(address)).toBe(false)
    }
  })

  test('does not contain IPv4 addresses in an IPv6 subnet', () => {
    expect(parseSubnets('::/0').contains('127.0.0.1')).toBe(false)
    expect(parseSubnets('::ffff:0:0/96').contains('127.0.0.1')).toBe(false)
    expect(parseSubnets('::ffff:0:0/96').contains('::ffff:127.0.0.1')).toBe(true)
  })

  test.each(['', 'localhost', '127.0.0.1%lo', '127.1', 'fe80::1%eth0', '127.0.0.1:80'])('never contains %j', (text) => {
    expect(parseSubnets('0.0.0.0/0,::/0').contains(text)).toBe(false)
  })

  test.each([
    ['localhost', '"localhost" is not a CIDR block'],
    ['127.1/8', '"127.1/8" is not a CIDR block'],
    ['127.0.0.0/8/8', '"127.0.0.0/8/8" is not a CIDR block'],
    ['fe80::1%eth0/64', '"fe80::1%eth0/64" is not a CIDR block'],
    ['10.0.0.0/33', '"10.0.0.0/33" needs a prefix length from 0 to 32 after the slash'],
    ['10.0.0.0/08', '"10.0.0.0/08" needs a prefix length from 0 to 32 after the slash'],
    ['fd00::/129', '"fd00::/129" needs a prefix length from 0 to 128 after the slash'],
    ['10.1.2.3/8', '"10.1.2.3/8" has bits set beyond its prefix: write 10.0.0.0/8 or 10.1.2.3'],
    ['::1.2.3.4/96', '"::1.2.3.4/96" has bits set beyond its prefix: write ::/96 or ::1.2.3.4'],
  ])('rejects %j and says what to write', (text, message) => {
    expect(() => parseSubnets(text)).toThrow(message)
  })

  test('names all invalid entries at once', () => {
    expect(() => parseSubnets('x,127.0.0.0/8,y')).toThrow('"x" is not a CIDR block; "y" is not a CIDR block')
  })

  test('agrees with arithmetic for any IPv4 block', () => {
    const address = fc.nat({ max: 2 ** 32 - 1 })
    fc.assert(
      fc.property(address, fc.nat({ max: 32 }), address, (seed, prefix, other) => {
        const size = 2 ** (32 - prefix)
        const network = Math.floor(seed / size) * size
        const subnets = parseSubnets(`${toText(network)}/${prefix}`)
        expect(subnets.contains(toText(other))).toBe(other >= network && other < network + size)
        expect(subnets.contains(toText(seed))).toBe(true)
      }),
      { seed: 1 },
    )
  })
})

function toText(bits: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join('.')
}

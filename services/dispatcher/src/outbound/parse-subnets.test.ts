import { describe, expect, test } from '@jest/globals'
import { parseSubnets } from './parse-subnets.ts'

describe('parseSubnets', () => {
  test('reads blocks and single addresses of both families, separated by commas or spaces', () => {
    const subnets = parseSubnets(' 127.0.0.0/8, 10.1.2.3,fd00::/8\n::1 ')
    expect(subnets.cidrs).toEqual(['127.0.0.0/8', '10.1.2.3/32', 'fd00::/8', '::1/128'])
    expect(parseSubnets(' ,\n').contains('127.0.0.1')).toBe(false)
  })

  test('contains exactly the addresses of the blocks, not their spellings in the other family', () => {
    const subnets = parseSubnets('10.1.0.0/16,192.168.7.7,fd12:3456::/32,::1')
    const inside = ['10.1.0.0', '10.1.255.255', '192.168.7.7', 'fd12:3456::', 'fd12:3456:ffff::1', '::1']
    const outside = ['10.0.255.255', '10.2.0.0', '192.168.7.6', '192.168.7.8', 'fd12:3457::', 'fd12:3455::1', '::']
    expect(inside.filter((address) => !subnets.contains(address))).toEqual([])
    const mapped = ['::ffff:10.1.0.0', '::10.1.0.0', '64:ff9b::a01:0', '2002:a01:0::', '::ffff:a01:0']
    expect([...outside, ...mapped].filter((address) => subnets.contains(address))).toEqual([])
    expect(parseSubnets('::/0').contains('127.0.0.1')).toBe(false)
    expect(parseSubnets('::ffff:0:0/96').contains('::ffff:127.0.0.1')).toBe(true)
  })

  test.each(['', 'localhost', '127.0.0.1%lo', '127.1', 'fe80::1%eth0', '127.0.0.1:80'])('never contains %j', (text) => {
    expect(parseSubnets('0.0.0.0/0,::/0').contains(text)).toBe(false)
  })

  test('refuses all that is no block, and all at once', () => {
    const invalid = [
      'localhost',
      '127.1/8',
      '127.0.0.0/8/8',
      'fe80::1%eth0/64',
      '10.0.0.0/33',
      'fd00::/129',
      '::1.2.3.4',
    ]
    const beyondPrefix = ['10.1.2.3/8', 'fd00::1/8']
    const named = [...invalid, ...beyondPrefix].map((entry) => `"${entry}"`).join(', ')
    expect(() => parseSubnets(`127.0.0.0/8,${[...invalid, ...beyondPrefix].join(' ')}`)).toThrow(
      `is not a list of subnets: ${named}; write addresses, or the first address of a block with its prefix, such as 10.0.0.0/8`,
    )
  })
})

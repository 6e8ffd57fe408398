import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import { findSpecialRange } from './find-special-range.ts'
import { SPECIAL_IPV4, SPECIAL_IPV6 } from './special-addresses.ts'

type Row = [cidr: string, before: boolean | null, after: boolean | null]

/**
 * Blocks of the two IANA Special-Purpose Address registries and those that they do not list, written down
 * independently of the table under test. `before` and `after`: whether the addresses directly before the first and
 * after the last one of the block are public (null if there is no such address).
 */
const ipv4Ranges: Row[] = [
  ['0.0.0.0/8', null, true],
  ['0.0.0.0/32', null, false],
  ['10.0.0.0/8', true, true],
  ['100.64.0.0/10', true, true],
  ['127.0.0.0/8', true, true],
  ['169.254.0.0/16', true, true],
  ['172.16.0.0/12', true, true],
  ['192.0.0.0/24', true, true],
  ['192.0.2.0/24', true, true],
  ['192.31.196.0/24', true, true],
  ['192.52.193.0/24', true, true],
  ['192.88.99.0/24', true, true],
  ['192.168.0.0/16', true, true],
  ['192.175.48.0/24', true, true],
  ['198.18.0.0/15', true, true],
  ['198.51.100.0/24', true, true],
  ['203.0.113.0/24', true, true],
  ['224.0.0.0/4', true, false],
  ['240.0.0.0/4', false, null],
  ['255.255.255.255/32', false, null],
  ['168.63.129.16/32', true, true],
  ['100.100.100.200/32', false, false],
  ['169.254.169.254/32', false, false],
]

const ipv6Ranges: Row[] = [
  ['::/128', null, false],
  ['::1/128', false, false],
  ['::/96', null, false],
  ['::ffff:0:0/96', false, false],
  ['::ffff:0:0:0/96', false, false],
  ['64:ff9b::/96', false, false],
  ['64:ff9b:1::/48', false, false],
  ['100::/64', false, false],
  ['100:0:0:1::/64', false, false],
  ['200::/7', false, false],
  ['1000::/4', false, true],
  ['2001::/23', true, true],
  ['2001::/32', true, false],
  ['2001:db8::/32', true, true],
  ['2002::/16', true, true],
  ['2620:4f:8000::/48', true, true],
  ['3fff::/20', true, true],
  ['4000::/2', true, false],
  ['5f00::/16', false, false],
  ['8000::/1', false, null],
  ['fc00::/7', false, false],
  ['fd00:ec2::254/128', false, false],
  ['fd20:ce::254/128', false, false],
  ['fe80::/10', false, false],
  ['fec0::/10', false, false],
  ['ff00::/8', false, null],
]

const isPublic = (address: string): boolean => findSpecialRange(address) === undefined

describe('findSpecialRange, range by range', () => {
  test.each([...ipv4Ranges, ...ipv6Ranges])(
    'no address of %s is public; the addresses before and after it: %s, %s',
    (...row) => {
      const [cidr, before, after] = row
      const { first, last } = bounds(cidr)
      const inEachSpelling = (bits: bigint): (boolean | null)[] => {
        if (bits < 0n || bits >= 2n ** BigInt(width(cidr))) return [null]
        const spellings = width(cidr) === 32 ? [toIpv4] : ipv6Spellings
        return [...new Set(spellings.map((spell) => isPublic(spell(bits))))]
      }
      expect([first, (first + last) / 2n, last].map(inEachSpelling)).toEqual([[false], [false], [false]])
      expect([first - 1n, last + 1n].map(inEachSpelling)).toEqual([[before], [after]])
    },
  )

  test('has no range that is missing in this list', () => {
    const known = new Set([...ipv4Ranges, ...ipv6Ranges].map(([cidr]) => cidr))
    const unknown = [...SPECIAL_IPV4, ...SPECIAL_IPV6].map(([cidr]) => cidr).filter((cidr) => !known.has(cidr))
    expect(unknown).toEqual([])
  })

  test('names the narrowest range that contains the address, and its purpose', () => {
    expect(findSpecialRange('169.254.169.254')).toEqual(['169.254.169.254/32', 'cloud metadata'])
    expect(findSpecialRange('127.0.0.1')).toEqual(['127.0.0.0/8', 'loopback'])
    expect(findSpecialRange('::ffff:8.8.8.8')).toEqual(['::ffff:0:0/96', 'IPv4-mapped address'])
    expect(findSpecialRange('2001::1')).toEqual(['2001::/32', 'IPv4 in IPv6 (Teredo)'])
    expect(findSpecialRange('9999::1')).toEqual(['outside 2000::/3', 'not allocated'])
    for (const table of [SPECIAL_IPV4, SPECIAL_IPV6]) {
      for (const [cidr] of table) {
        const address = cidr.includes(':') ? toIpv6(bounds(cidr).first) : toIpv4(bounds(cidr).first)
        const [range] = findSpecialRange(address)!
        expect(Number(range.split('/')[1])).toBeGreaterThanOrEqual(Number(cidr.split('/')[1]))
      }
    }
  })
})

describe('findSpecialRange', () => {
  test.each(['', '8.8.8', '08.8.8.8', '2606:4700::1%eth0', '8.8.8.8/32', '8.8.8.8:80', 'localhost'])(
    'calls %j no IP address',
    (text) => {
      expect(findSpecialRange(text)).toEqual(['', 'not an IP address'])
    },
  )

  test('calls every other address public, in any spelling', () => {
    const special = [ipv4Ranges, ipv6Ranges].map((ranges) => ranges.map(([cidr]) => bounds(cidr)))
    const ordinaryIpv4 = addressIn('0.0.0.0/0').filter((bits) => !isWithin(bits, special[0] ?? []))
    const ordinaryIpv6 = addressIn('2000::/3').filter((bits) => !isWithin(bits, special[1] ?? []))
    const ordinary = fc.oneof(
      ordinaryIpv4.map(toIpv4),
      fc.tuple(ordinaryIpv6, fc.constantFrom(...ipv6Spellings)).map(([bits, spell]) => spell(bits)),
    )
    fc.assert(
      fc.property(ordinary, (address) => expect(findSpecialRange(address)).toBeUndefined()),
      { seed: 1, numRuns: 300 },
    )
  })

  test('calls no other text public, and does not throw', () => {
    const notAnAddress = fc.string({ unit: anyCharacter }).filter((text) => !/[.:]/u.test(text))
    fc.assert(
      fc.property(notAnAddress, (text) => expect(isPublic(text)).toBe(false)),
      { seed: 1, numRuns: 300 },
    )
  })
})

const width = (cidr: string): number => (cidr.includes(':') ? 128 : 32)

function bounds(cidr: string): { first: bigint; last: bigint } {
  const [network = '', prefix] = cidr.split('/')
  const first = width(cidr) === 128 ? fromIpv6(network) : fromIpv4(network)
  return { first, last: first + 2n ** BigInt(width(cidr) - Number(prefix)) - 1n }
}

function isWithin(bits: bigint, ranges: { first: bigint; last: bigint }[]): boolean {
  return ranges.some(({ first, last }) => bits >= first && bits <= last)
}

function addressIn(cidr: string): fc.Arbitrary<bigint> {
  const { first, last } = bounds(cidr)
  return fc.bigInt({ min: first, max: last })
}

function fromIpv4(text: string): bigint {
  return text.split('.').reduce((sum, octet) => sum * 256n + BigInt(octet), 0n)
}

function toIpv4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.')
}

/** Reads only the networks of the table: hexadecimal groups with one `::`. */
function fromIpv6(text: string): bigint {
  const [head = '', tail = ''] = text.split('::')
  const front = head.split(':').filter(Boolean)
  const back = tail.split(':').filter(Boolean)
  const groups = [...front, ...Array.from({ length: 8 - front.length - back.length }, () => '0'), ...back]
  return groups.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n)
}

function ipv6Groups(bits: bigint): string[] {
  return Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - index * 16)) & 0xffffn).toString(16))
}

function toIpv6(bits: bigint): string {
  return ipv6Groups(bits).join(':')
}

const ipv6Spellings: ((bits: bigint) => string)[] = [
  toIpv6,
  (bits) => toIpv6(bits).toUpperCase(),
  (bits) =>
    ipv6Groups(bits)
      .map((group) => group.padStart(4, '0'))
      .join(':'),
  (bits) => toIpv6(bits).replace(/(?:^|:)0(?::0)+(?::|$)/u, '::'),
  (bits) => `${ipv6Groups(bits).slice(0, 6).join(':')}:${toIpv4(bits & 0xffff_ffffn)}`,
]

import { isIP } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import { checkUrl, type UrlCheck } from './check-url.ts'
import { findAddressError } from './find-address-error.ts'
import { NO_SUBNETS, parseSubnets } from './parse-subnets.ts'

/** URLs as an attacker or a customer in a hurry may write them, each with the expected result. */
const urls: Record<string, (readonly [url: string, expected: string])[]> = {
  'ordinary, accepted': [
    ...all('name hooks.example.com')`
      https://hooks.example.com/in http://hooks.example.com https://hooks.example.com:8443/a/b?c=d#e
      HTTPS://HOOKS.EXAMPLE.COM/In https://hooks.example.com. https://hooks.example.com/a:b@c
      https://hooks.example.com/?next=http://127.0.0.1/ https://hooks.example.com/#http://127.0.0.1
      https://hooks.example.com/%2e%2e/%5c https://hooks.example.com:/ https://hooks.example.com:00443/
      https://hooks.example.com:65535/
    `,
    ['https://a.co', 'name a.co'],
    ['https://xn--bcher-kva.example/', 'name xn--bcher-kva.example'],
    ['https://bücher.example/ä?ö=ü', 'name xn--bcher-kva.example'],
    ['https://例え.テスト/', 'name xn--r8jz45g.xn--zckzah'],
    ['https://a-b_c.example.com/', 'name a-b_c.example.com'],
    ['https://127.0.0.1.nip.io/', 'name 127.0.0.1.nip.io'],
    ['https://localhost.example.com/', 'name localhost.example.com'],
    ['https://8.8.8.8/', 'address 8.8.8.8'],
    ['http://8.8.8.8:8080/x', 'address 8.8.8.8'],
    ['https://[2606:4700:4700::1111]/', 'address 2606:4700:4700::1111'],
    ['https://[2606:4700:4700:0000:0000:0000:0000:1111]:8443/', 'address 2606:4700:4700::1111'],
    ['https://hooks.example.test/', 'name hooks.example.test'],
    ['https://metadata.google.com/', 'name metadata.google.com'],
    ['https://0x7f.example.com/', 'name 0x7f.example.com'],
  ],
  loopback: [
    ...all('url_not_public')`
      http://127.0.0.1 http://127.0.0.1:80/ http://127.0.0.1:8081/internal http://127.0.0.1#x http://127.1/
      http://127.0.1/ http://127.255.255.255/ http://0/ http://0.0.0.0/ http://0.1.2.3/ http://localhost/
      http://localhost:8080/ http://localhost./ http://foo.localhost/ http://localhost.localdomain/ http://localhost6/
      http://ip6-localhost/ http://[::1]/ http://[0:0:0:0:0:0:0:1]/ http://[::]/ http://[0::0]/
    `,
    ...all('url_parsing')`
      http://localhost../
    `,
  ],
  'numbers that are addresses': [
    ...all('url_not_public')`
      http://2130706433/ http://017700000001/ http://0x7f000001/ http://0x7f.1/ http://0177.0.0.1/ http://0127.0.0.1/
      http://127.0.0.0x1/ http://127.00.00.01/ http://127.0.0.1./ http://8.8.8.8./ http://010.8.8.8/ http://8.8.2056/
      http://134744072/ http://8.525320/ http://3232235521/ http://0xa9fea9fe/ http://0251.0376.0251.0376/
      http://169.16689662/ http://1.2.3/ http://0x/ http://1e9/ http://-1/
    `,
    ...all('url_parsing')`
      http://127.0.0.1../ http://08.8.8.8/ http://4294967296/ http://256.256.256.256/ http://1.2.3.4.5/
      http://127.0.0.1.1/ http://0x100000000/ http://+127.0.0.1/
    `,
  ],
  'private, special and metadata': [
    ...all('url_not_public')`
      http://10.0.0.1/ http://100.100.100.200/latest/meta-data/ http://169.254.169.254/latest/meta-data/
      http://169.254.170.2/v2/credentials http://192.0.0.192/opc/v1/ http://168.63.129.16/
      http://metadata.google.internal/computeMetadata/v1/ http://metadata/
      http://instance-data.ec2.internal/ http://kubernetes.default.svc.cluster.local/ http://kubernetes/
      http://host.docker.internal/ http://printer.local/ http://nas.lan/ http://router.home.arpa/ http://wiki.corp/
      http://intranet/ http://x.private/ http://x.home/ http://abc.onion/ http://ai/ http://com./ http://postgres:5432/
    `,
  ],
  IPv6: [
    ...all('url_not_public')`
      http://[fc00::1]/ http://[fd00:ec2::254]/latest/ http://[4000::1]/ http://[64:ff9b::127.0.0.1]/
      http://[64:ff9b::7f00:1]/ http://[64:ff9b:1::a9fe:a9fe]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
      http://[::ffff:169.254.169.254]/ http://[::ffff:8.8.8.8]/ http://[::127.0.0.1]/ http://[::ffff:0:127.0.0.1]/
    `,
    ...all('url_parsing')`
      http://[::ffff:127.1]/ http://[::ffff:0x7f.0.0.1]/ http://[fe80::1%25eth0]/ http://[2606:4700::1%25lo]/
      http://[::1]%00/ http://[::1].example.com/ http://[::1 http://::1/ http://[::1]]/ http://[127.0.0.1]/
      http://[example.com]/ http://[::1]x/ http://2606:4700::1/ http://[]/ http://[1:2:3:4:5:6:7:8:9]/
    `,
  ],
  'other digits and letters': [
    ['http://foo.ʟocal/', 'name foo.xn--ocal-uhc'],
    ['http://example．com/', 'name example.com'],
    ['http://💩.la/', 'name xn--ls8h.la'],
    ...all('url_not_public')`
      http://１２７.０.０.１/ http://127。0。0。1/ http://127．0．0．1/ http://127｡0｡0｡1/ http://①②⑦.⓪.⓪.①/ http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/
      http://ｌｏｃａｌｈｏｓｔ/ http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/ http://loca\u00ADlhost/ http://loc\u200Balhost/ http://localhoſt/
      http://127.0.0.1\u200B/ http://127.0.0.\u00AD1/ http://⑯⑨。②⑤④。⑯⑨｡②⑤④/ http://metadata.google.ｉnternal/
      http://foo.ⅼocal/ http://８.８.８.８/ http://xn--/ http://xn--a/ http://xn--lgbbat1ad8j/ http://LOCALHOST\u0307/
    `,
    ...all('url_parsing')`
      http://١٢٧.٠.٠.١/ http://example\u3000.com/ http://example.com\u2028/ http://exa\u0000mple.com/
      http://example.com／evil/ http://example.com＠127.0.0.1/ http://example.com：80/ http://example.com﹫127.0.0.1/
      http://a\u{E0061}.com/ http://\uFEFFexample.com/ http://ex\uD800ample.com/ https://hooks.example.com/\uDC00
    `,
  ],
  'percent signs': [
    ...all('url_not_public')`
      http://%31%32%37.0.0.1/ http://%6c%6f%63%61%6c%68%6f%73%74/ http://example.com%23@127.0.0.1/
      http://%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1/ http://127%2e0%2e0%2e1/
    `,
    ...all('url_parsing')`
      http://127.0.0.1%2f@example.com/ http://localhost%00.example.com/ http://127.0.0.1%00.example.com/
      http://127.0.0.1%20.example.com/ http://127.0.0.1%09/ http://example.com%2f.evil.com/
      http://example.com%40127.0.0.1/ http://ex%61mple.com/ http://example%2ecom/ http://%2531.com/
      http://example.com%/ http://%5b::1%5d/ http://example.com%3a80/
    `,
  ],
  'user information and confusion over the host': [
    ['http://example.com#@127.0.0.1/', 'name example.com'],
    ['http://example.com?@127.0.0.1/', 'name example.com'],
    ['http://127.0.0.1 example.com/', 'url_parsing'],
    ['http://example.com 127.0.0.1/', 'url_parsing'],
    ['http://1.1.1.1 &@127.0.0.1# @3.3.3.3/', 'url_not_public'],
    ...all('url_parsing')`
      http://user@example.com/ http://user:pass@example.com/ http://@example.com/ http://:@example.com/
      http://:pass@example.com/ http://user:@example.com/ http://127.0.0.1@example.com/
      http://127.0.0.1:80@example.com:80/ http://a@b@example.com/ http://[::1]@example.com/
      http://127.0.0.1;@example.com/ http://127.0.0.1:80:80/ http://127.0.0.1,example.com/
      http://127.0.0.1&@example.com/
    `,
    ...all('url_not_public')`
      http://example.com@127.0.0.1/ http://example.com:80@127.0.0.1/ http://example.com%40@127.0.0.1/
      http://127.0.0.1#@example.com/ http://127.0.0.1/@example.com http://127.0.0.1?@example.com
    `,
  ],
  'back slashes, tabs, line ends, spaces': [
    ['ht\ntp://127.0.0.1/', 'url_not_public'],
    ['http://127.0.\r\n0.1/', 'url_not_public'],
    ['https://hooks.example.com/a\nb', 'url_parsing'],
    ['https://hooks.example.com/\r\nHost: x', 'url_parsing'],
    ['https://hooks.example.com/ HTTP/1.1', 'url_parsing'],
    ['https://hooks.example.com/a b', 'url_parsing'],
    [' https://hooks.example.com/', 'url_parsing'],
    ['https://hooks.example.com/ ', 'url_parsing'],
    ['https://hooks.exam\nple.com/', 'url_parsing'],
    ...all('url_not_public')`
      http:\\\\127.0.0.1\\ http://127.0.0.1\\@example.com/ http:/\\127.0.0.1/ http://127.0.0.1\t/ http://12\t7.0.0.1/
      http://\t127.0.0.1/
    `,
    ...all('url_parsing')`
      http:\\\\example.com\\ http://example.com\\@127.0.0.1/ http://example.com\\127.0.0.1/ http:/\\example.com/
      https://hooks.example.com/a\\b https://hooks.example.com/?a=\\ \\\\127.0.0.1\\x h\tttp://example.com/
      https://hooks.example.com/a\tb \u0000https://hooks.example.com/ https://hooks.example.com/\u0000
      https://hooks.example.com/\u007F https://hooks.example.com/\u0085 https://hooks.example.com/\u00A0
      \u00A0https://hooks.example.com/ https://hooks.example.com/\u2003x https://hooks.example.com/\u000B
      \uFEFFhttps://hooks.example.com/
    `,
  ],
  schemes: [
    ...all('url_scheme')`
      ftp://example.com/ file:///etc/passwd file://127.0.0.1/c$ gopher://127.0.0.1:6379/_x ldap://127.0.0.1/
      javascript:alert(1) data:text/plain,x ws://example.com/ unix:/var/run/docker.sock blob:https://example.com/x
      about:blank mailto:a@example.com view-source:http://127.0.0.1/ shttp://example.com/ netdoc:///etc/passwd
    `,
    ...all('url_parsing')`
      http_://example.com/
    `,
  ],
  'not quite URLs': [
    ['', 'url_parsing'],
    ['http://${HOST}/', 'url_parsing'],
    ...all('url_parsing')`
      / // //127.0.0.1/ //example.com/ ///example.com example.com example.com:8080/hook 127.0.0.1 127.0.0.1:80 http
      http: http:/ http:// https:// http:/// http://// http://:80/ http:example.com http:/example.com
      https:///example.com/ http://. http://.. http://.example.com/ http://example..com/ http://example.com../
      http://*/ http://*.example.com/ http://exa^mple.com/ http://exa{mple}.com/ http://exa;mple.com/
      http://exa"mple.com/ http://$HOST/ {{url}} http://example.com:0/ http://example.com:65536/ http://example.com:-1/
      http://example.com:80a/ http://example.com:８０/ http://example.com:80:90/ null
      http://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com/
    `,
    ...all('url_not_public')`
      http:127.0.0.1 http:/127.0.0.1 http:///127.0.0.1/ https:https://example.com/ http://https://example.com/
      http://-/
    `,
  ],
}

describe.each(Object.entries(urls))('checkUrl, %s', (_, rows) => {
  test.each([...rows])('%j: %s', (url, expected) => expect(toShort(checkUrl(url))).toBe(expected))
})

describe('checkUrl', () => {
  test('accepts up to 2,000 characters as typed, and counts code points', () => {
    const start = 'https://hooks.example.com/'
    const pad = (length: number, character: string) => start + character.repeat(length - start.length)
    for (const character of ['a', 'ä', '👋']) {
      expect(checkUrl(pad(2000, character)).isAllowed).toBe(true)
      expect(toShort(checkUrl(pad(2001, character)))).toBe('string_too_long')
    }
    expect(toShort(checkUrl('x'.repeat(10_000_000)))).toBe('string_too_long')
  })

  test('accepts names of up to 253 characters, with up to 63 between two dots', () => {
    expect(checkHostName(`${'a.'.repeat(126)}b`)).toMatch(/^name /u)
    expect(checkHostName(`${'a.'.repeat(126)}bc`)).toBe('url_parsing')
    expect(checkHostName(`${'a'.repeat(63)}.example`)).toMatch(/^name /u)
    expect(checkHostName(`${'a'.repeat(64)}.example`)).toBe('url_parsing')
  })

  test('says what is wrong and what to do', () => {
    expect(
      [
        'ftp://example.com/',
        'example.com:8080/hook',
        'https://ada:secret@example.com/',
        'http://127.0.0.1/',
        'http://0x08080808/',
        'http://wiki/',
        'http://wiki.internal/',
      ].map((text) => toMessage(checkUrl(text))),
    ).toEqual([
      'The URL must start with https:// or http://',
      'The URL must start with https:// or http:// and then name a host',
      'The URL must not contain a user name or password: use a signing secret',
      'The endpoint must be publicly reachable: 127.0.0.1 is not a public address (loopback, 127.0.0.0/8)',
      'The endpoint must be publicly reachable: the host is another spelling of 8.8.8.8: write it like that',
      'The endpoint must be publicly reachable: the host name "wiki" has no top-level domain',
      'The endpoint must be publicly reachable: host names that end in .internal are private',
    ])
  })

  test('repeats no password in its message', () => {
    expect(toMessage(checkUrl('https://ada:hunter2@example.com/'))).not.toContain('hunter2')
    expect(toMessage(checkUrl('https://ada:hunter2@127.0.0.1/'))).not.toContain('hunter2')
  })
})

describe('checkUrl with allowed subnets', () => {
  const allowed = parseSubnets('127.0.0.0/8,fd00::/8')

  test.each([
    ['http://127.0.0.1:3000/hook', 'address 127.0.0.1'],
    ['http://127.255.0.1/', 'address 127.255.0.1'],
    ['http://[fd00::5]:3000/', 'address fd00::5'],
    ['http://customer:3000/hook', 'name customer'],
    ['http://customer.local/', 'name customer.local'],
    ['http://host.docker.internal:3000/', 'name host.docker.internal'],
    ['http://localhost:3000/', 'name localhost'],
    ['http://LOCALHOST./', 'name localhost'],
    ['http://app.localhost/', 'name app.localhost'],
    ['https://hooks.example.com/', 'name hooks.example.com'],
    ['https://8.8.8.8/', 'address 8.8.8.8'],
    // Other private addresses and ambiguous spellings stay refused.
    ...all('url_not_public')`
      http://10.0.0.1/ http://169.254.169.254/ http://[::1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
      http://[::127.0.0.1]/ http://[64:ff9b::7f00:1]/ http://0.0.0.0/ http://127.1/ http://2130706433/
      http://0177.0.0.1/ http://127.0.0.1./
    `,
    ...all('url_parsing')`
      http://user@127.0.0.1/ http://127.0.0.1\\@example.com/ http://127.0.0.1:0/
    `,
    ['ftp://127.0.0.1/', 'url_scheme'],
  ])('%j: %s', (url, expected) => expect(toShort(checkUrl(url, allowed))).toBe(expected))
})

describe('checkUrl, any text', () => {
  /** Characters that mean something in URLs, addresses and subnets, and any others. */
  const anyText = fc.string({
    unit: fc.oneof(
      fc.constantFrom(...Array.from('/:@.%[]?#\\-0123456789abcdefx \t\n,\u3002\uFF0E\u00AD\u200D１ßé')),
      anyCharacter,
    ),
    maxLength: 60,
  })
  const host = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV4Extended(),
    fc.ipV6().map((ip) => `[${ip}]`),
    anyText,
  )
  const url = fc
    .tuple(fc.constantFrom('http://', 'https://', 'HTTPS:/', 'ftp://', ''), host, anyText)
    .map((parts) => parts.join(''))

  /** What URL parsers drop, change or decode, anywhere in a valid URL. */
  const odd = fc.oneof(
    fc.constantFrom('\t', '\n', '\r', ' ', '\0', '\u0085', '\u00A0', '\u3000', '\u2028', '\uFEFF', '\ud800', '\udc00'),
    fc.constantFrom(...Array.from('\u00AD\u200B\u2060\uFE0F\u{E0061}\u180B\\@:[]'), '%61', '%2e', '%00'),
    anyCharacter,
  )
  const oddUrl = fc
    .tuple(fc.constantFrom('https://hooks.example.com:8443/a?b=c#d', 'http://8.8.8.8/'), fc.nat(40), fc.nat(1), odd)
    .map(([text, index, replaced, more]) => text.slice(0, index) + more + text.slice(index + replaced))

  /** Texts in which one parser may see another host than the next. */
  const tokens =
    'http:// @ : / \\ # ? . % [ ] ::1 127.0.0.1 0x7f.1 localhost example.com 8.8.8.8 80 0 \u200B 。 %40 %2f'
  const joined = fc
    .array(fc.constantFrom(...tokens.split(' '), ' ', '\t'), { maxLength: 8 })
    .map((parts) => `https://${parts.join('')}`)

  test('accepts a public address, or the name of one host that every URL parser reads alike; never throws', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(url, anyText, fc.webUrl(), oddUrl, joined), (text) => {
        const check = checkUrl(text)
        if (!check.isAllowed) return check.message !== ''
        accepted += 1
        expect(text).not.toMatch(/[\p{Cc}\p{White_Space}\p{Cs}\\]/u)
        expect(text).toMatch(/^https?:\/\/[^/?#@%]+([/?#]|$)/i)
        const shown = text.split('/')[2]?.replaceAll(/[\u200C\u200D]/g, '')
        expect(shown?.split(/[?#]/)[0]).not.toMatch(/\p{Default_Ignorable_Code_Point}/u)
        const { hostname, username, password, protocol } = new URL(text)
        const ascii = /^([a-z0-9.。-]+)(?::\d*)?(?:[?#]|$)/iu.exec(shown ?? '')?.[1]
        const isAsShown = !ascii || hostname === ascii.toLowerCase().replaceAll('。', '.')
        const isPublic =
          isIP(check.host) === 0 ? /\.[a-z][a-z0-9-]*$/.test(check.host) : findAddressError(check.host) === undefined
        return isPublic && isAsShown && /^https?:$/.test(protocol) && username + password === '' && hostname !== ''
      }),
      { seed: 20261122, numRuns: 1_000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

const isOwn = (address: string) => address === '8.8.8.8'

test("this machine's own public addresses are refused, unless their subnet is allowed", () => {
  expect(findAddressError('8.8.4.4', NO_SUBNETS, isOwn)).toBeUndefined()
  expect(findAddressError('8.8.8.8', NO_SUBNETS, isOwn)).toBe('8.8.8.8 is an address of the service itself')
  expect(findAddressError('8.8.8.8', parseSubnets('8.8.8.0/24'), isOwn)).toBeUndefined()
  expect(findAddressError('nonsense', parseSubnets('0.0.0.0/0,::/0'))).toMatch('(not an IP address)')
})

/** Expects one result of all URLs of a text, between which are spaces and line breaks. */
function all(expected: string) {
  return ([text = '']: TemplateStringsArray) =>
    text.split(/[ \n]+/).flatMap((url) => (url === '' ? [] : [[url, expected] as const]))
}

/** The result for a plain URL with this host name. */
function checkHostName(name: string): string {
  return toShort(checkUrl(`http://${name}/`))
}

function toShort(check: UrlCheck): string {
  if (!check.isAllowed) return check.code
  return `${isIP(check.host) === 0 ? 'name' : 'address'} ${check.host}`
}

function toMessage(check: UrlCheck): string {
  return check.isAllowed ? '' : check.message
}

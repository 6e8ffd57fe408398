import { describe, expect, test } from '@jest/globals'
import { parseManifest } from './manifest-file.ts'

const errorsOf = (text: string) =>
  parseManifest('m.yaml', text).errors.map(({ path, message, line }) => `${line ?? '-'} ${path}: ${message}`)
const valueOf = (text: string) => parseManifest('m.yaml', text).value

describe('parseManifest', () => {
  test('reads YAML, and JSON with tabs and a byte order mark', () => {
    expect(valueOf('organization: { name: Acme } # the one')).toEqual({ organization: { name: 'Acme' } })
    const json = '\ufeff{\n\t"organization": {\n\t\t"name": "Acme"\n\t}\n}\n'
    expect(valueOf(json)).toEqual({ organization: { name: 'Acme' } })
  })

  test.each<[string, string, string[]]>([
    ['nothing', '# nothing yet\n', ['- : is empty; a manifest begins with "organization:"']],
    ['a scalar', 'hello', ['1 : must be a JSON object']],
    ['no organization', 'users: []\n', ['1 organization: is missing']],
    ['a duplicate key', 'organization: { name: A }\nusers: []\nusers: []\n', ['3 : Map keys must be unique']],
    ['a duplicate key in JSON', '{"users": [],\n"users": []}', ['2 : Map keys must be unique']],
    ['tabs as indentation', 'organization:\n\tname: Acme\n', ['2 : Tabs are not allowed as indentation']],
    [
      'several documents',
      'a: 1\n---\nb: 2\n',
      ['2 : has several documents (---); put each manifest into its own file'],
    ],
    ['an unknown tag', 'organization: { name: !secret A }\n', ['1 : Unresolved tag: !secret']],
    ['a key that is not a string', '? [a]\n: b\n', ['1 : With stringKeys, all keys must be strings']],
    [
      'an alias without an anchor',
      'organization: *acme\n',
      ['- : Unresolved alias (the anchor must be set before the alias): acme'],
    ],
    ['YAML that ends too early', 'organization: { name: A', [expect.stringMatching(/^1 /) as unknown as string]],
  ])('says what is wrong with %s', (_what, text, errors) => {
    expect(errorsOf(text)).toEqual(errors)
  })

  test('accepts anchors, aliases and merge keys', () => {
    const text =
      'organization: { name: A }\nworkflows:\n  - &base { name: A, is_active: false }\n  - { <<: *base, name: B }\n'
    expect(valueOf(text)).toMatchObject({ workflows: [{ name: 'A' }, { name: 'B', is_active: false }] })
  })

  test('rejects aliases that multiply', () => {
    const levels = 'abcdefgh'.split('').map((name, index, all) => {
      const item = index === 0 ? 'x' : `*${all[index - 1]}`
      return `${name}: &${name} [${Array.from({ length: 9 }, () => item).join(', ')}]`
    })
    const [error] = errorsOf(`organization: { name: A }\n${levels.join('\n')}`)
    expect(error).toBe('- : uses more than 100 aliases; repeat the content instead, or split the file')
  })

  test.each(['[', '{a: ', '- '])('rejects very deep nesting: %s', (opening) => {
    expect(errorsOf(opening.repeat(5_000))[0]).toBe('1 : is nested too deeply')
  })

  test('rejects decimals that JSON does not keep, and no others', () => {
    const kept = `half: .5, pi: 3.14159265358979, sum: ${0.1 + 0.2}, large: ${Number.MAX_VALUE}, whole: 1234567890123456.`
    const filters = `filters: { ${kept},\n rate: -.12345678901234567890, most: 1e400 }`
    expect(errorsOf(`organization: { name: A }\n${filters}`)).toEqual([
      '3 : -.12345678901234567890 is a number with more digits than are kept; write fewer, or a text in quotes',
      '3 : 1e400 is no finite number; write a smaller one, or a text in quotes',
    ])
  })

  test('treats __proto__ as an ordinary key', () => {
    expect(errorsOf('organization: { name: A }\n__proto__: { suspended: true }\n')).toEqual([
      '2 __proto__: is not a known field; remove it',
    ])
  })
})

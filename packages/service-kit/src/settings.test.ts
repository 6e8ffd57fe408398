import { describe, expect, test } from '@jest/globals'
import { readSettings, settingsErrors } from './settings.ts'
import { splitList } from './split-list.ts'
import { Type } from '@workflow-service/contract/type'

const Settings = Type.Object({
  DATABASE_URL: Type.String({
    format: 'postgres-url',
    description: 'Where Postgres is.',
    examples: ['postgres://localhost/workflows'],
  }),
  PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 8080, description: 'The port.', examples: [8080] }),
  TRUST_PROXY: Type.Boolean({ default: false, description: 'Behind a proxy.', examples: ['false'] }),
  INTERNAL_API_TOKEN: Type.String({
    format: 'token-list',
    writeOnly: true,
    description: 'The token.',
    examples: ['…'],
  }),
  RATIO: Type.Number({ default: 1, description: 'A ratio.', examples: [0.5] }),
  COLORS: Type.String({ default: '', description: 'Colors.', examples: ['red,blue'] }),
})
const valid = { DATABASE_URL: 'postgres://localhost/x', INTERNAL_API_TOKEN: 't'.repeat(32) }
const parseColors = (text: string): string[] => {
  const colors = splitList(text)
  if (colors.includes('gray')) throw new Error('must have no gray')
  return colors
}
const errorsOf = (env: NodeJS.ProcessEnv) =>
  settingsErrors(() => readSettings(Settings, env, { parsers: { COLORS: parseColors } }))

describe('readSettings', () => {
  test('turns text into numbers, booleans and what parsers return, fills in defaults, and takes nothing else', () => {
    const env = { ...valid, TRUST_PROXY: 'true', COLORS: 'red, blue', HOME: '/home/x' }
    const settings = readSettings(Settings, env, { parsers: { COLORS: parseColors } })
    expect(settings).toEqual({ ...valid, PORT: 8080, TRUST_PROXY: true, RATIO: 1, COLORS: ['red', 'blue'] })
  })

  test('counts an empty value as absent', () => {
    expect(readSettings(Settings, { ...valid, PORT: ' ' }).PORT).toBe(8080)
    expect(errorsOf({ ...valid, DATABASE_URL: '' })).toEqual([expect.stringMatching(/^DATABASE_URL is missing/)])
  })

  test('refuses a URL of PostgreSQL whose certificates cannot be read', () => {
    const url = 'postgres://one,two/x?sslmode=verify-full&sslrootcert='
    expect(errorsOf({ ...valid, DATABASE_URL: url + import.meta.filename })).toEqual([])
    expect(errorsOf({ ...valid, DATABASE_URL: `${url}/no/ca.pem` })).toEqual([
      expect.stringMatching(/^DATABASE_URL names as sslrootcert what cannot be read \(ENOENT: .*'\/no\/ca.pem'\)\./),
    ])
  })

  test('refuses infinite numbers, with and without a limit', () => {
    for (const RATIO of ['Infinity', '-1e999']) {
      expect(errorsOf({ ...valid, RATIO })).toEqual([
        `RATIO must be a finite number (it is "${RATIO}"). A ratio. Example: RATIO=0.5`,
      ])
    }
    expect(errorsOf({ ...valid, PORT: 'Infinity' })).toEqual([
      'PORT must be at most 65535 (it is "Infinity"). The port. Example: PORT=8080',
    ])
  })

  test('reports every error at once, each with the name, what is wrong and an example', () => {
    expect(errorsOf({ DATABASE_URL: 'mysql://x', PORT: 'many', COLORS: 'gray' }).toSorted()).toEqual([
      'COLORS must have no gray. Colors. Example: COLORS=red,blue',
      'DATABASE_URL must be a postgres:// URL (it is "mysql://x"). Where Postgres is. Example: DATABASE_URL=postgres://localhost/workflows',
      'INTERNAL_API_TOKEN is missing. The token. Example: INTERNAL_API_TOKEN=…',
      'PORT must be a whole number (it is "many"). The port. Example: PORT=8080',
    ])
  })

  test('reports the errors that the caller has found itself along with its own', () => {
    expect(() => readSettings(Settings, valid, { otherErrors: ['NODE_OPTIONS must be empty'] })).toThrow(
      'NODE_OPTIONS must be empty',
    )
  })

  test('never repeats the value of a secret', () => {
    expect(errorsOf({ ...valid, INTERNAL_API_TOKEN: 'hunter2' }).join()).not.toContain('hunter2')
  })
})

test('splitList takes the items between commas, without white space and empty items', () => {
  expect(splitList(' a, b,,c ')).toEqual(['a', 'b', 'c'])
})

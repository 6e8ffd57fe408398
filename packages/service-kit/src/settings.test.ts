import { describe, expect, test } from '@jest/globals'
import { Type } from 'typebox'
import { readSettings, SettingsError, splitList } from './settings.ts'

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
  WEBHOOK_ALLOWED_SUBNETS: Type.Optional(
    Type.String({ format: 'cidr-list', description: 'Networks.', examples: ['10.0.0.0/8'] }),
  ),
})
const good = { DATABASE_URL: 'postgres://localhost/x', INTERNAL_API_TOKEN: 't'.repeat(32) }
const faultsOf = (env: NodeJS.ProcessEnv): readonly string[] => {
  try {
    readSettings(Settings, env)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.faults
    throw error
  }
}

describe('readSettings', () => {
  test('turns text into numbers and booleans and fills in defaults', () => {
    expect(readSettings(Settings, { ...good, TRUST_PROXY: 'true' })).toEqual({ ...good, PORT: 8080, TRUST_PROXY: true })
  })

  test('counts an empty value as absent', () => {
    expect(readSettings(Settings, { ...good, PORT: ' ' }).PORT).toBe(8080)
    expect(faultsOf({ ...good, DATABASE_URL: '' })).toEqual([expect.stringMatching(/^DATABASE_URL is missing/)])
  })

  test('takes nothing from the environment that the schema does not name', () => {
    expect(readSettings(Settings, { ...good, HOME: '/home/x' })).not.toHaveProperty('HOME')
  })

  test('names every fault at once, each with the name, what was wrong and an example', () => {
    expect(
      faultsOf({ DATABASE_URL: 'mysql://x', PORT: 'many', WEBHOOK_ALLOWED_SUBNETS: '10.0.0.0/33' }).toSorted(),
    ).toEqual([
      'DATABASE_URL must be a postgres:// URL (it is "mysql://x"). Where Postgres is. Example: DATABASE_URL=postgres://localhost/workflows',
      'INTERNAL_API_TOKEN is missing. The token. Example: INTERNAL_API_TOKEN=…',
      'PORT must be a whole number (it is "many"). The port. Example: PORT=8080',
      'WEBHOOK_ALLOWED_SUBNETS must be a comma-separated list of networks in CIDR form (it is "10.0.0.0/33"). Networks. Example: WEBHOOK_ALLOWED_SUBNETS=10.0.0.0/8',
    ])
  })

  test('never repeats the value of a secret', () => {
    expect(faultsOf({ ...good, INTERNAL_API_TOKEN: 'hunter2' }).join()).not.toContain('hunter2')
  })
})

describe('splitList', () => {
  test('takes the items between commas, without white space and empty items', () => {
    expect(splitList(' a, b,,c ')).toEqual(['a', 'b', 'c'])
  })
})

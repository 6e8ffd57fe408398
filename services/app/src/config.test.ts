import { expect, test } from '@jest/globals'
import { readAppConfig } from './config.ts'

const read = (change: Record<string, string>) =>
  readAppConfig({
    DATABASE_URL: 'postgres://127.0.0.1/x',
    AMQP_URL: 'amqp://127.0.0.1',
    DISPATCHER_URL: 'http://127.0.0.1:8082',
    INTERNAL_API_TOKEN: 'a-token-of-the-internal-api-0123456789',
    ...change,
  })

test.each(['https://app.example', 'https://app.example/', ' https://APP.example:443/ '])(
  'APP_URL is an origin: %j',
  (url) => {
    expect(read({ APP_URL: url }).appUrl).toBe('https://app.example')
  },
)

test.each(['https://app.example/workflows', 'https://app.example/?a=1', 'https://app.example/#a'])(
  'APP_URL has no path, because links, cookies and the API are at the root: %s',
  (url) => {
    expect(() => read({ APP_URL: url })).toThrow('APP_URL must have no path')
  },
)

test('A mail server needs a host and a sender with an address', () => {
  const sender = 'Workflows <w@example.com>'
  expect(read({ SMTP_URL: 'smtp://a:b%2Fc@mail.example', SMTP_FROM: sender }).smtp?.url.hostname).toBe('mail.example')
  const unencoded = { SMTP_URL: 'smtp://a:b/c@mail.example', SMTP_FROM: sender }
  expect(() => read(unencoded)).toThrow(/^(?!.*b\/c)[^]*must have a host/)
  expect(() => read({ SMTP_URL: 'smtp://mail.example', SMTP_FROM: 'Workflows' })).toThrow(/SMTP_FROM/)
})

test('Sign-in with OpenID Connect needs all of its settings', () => {
  expect(() => read({ OIDC_ISSUER: 'https://id.example' })).toThrow(
    /OIDC_CLIENT_ID is missing[^]*OIDC_CLIENT_SECRET is missing[^]*APP_URL is missing/,
  )
})

const others = { OIDC_CLIENT_ID: 'a', OIDC_CLIENT_SECRET: 'b', APP_URL: 'https://app.example' }

test.each(['http://id.example', 'http://10.0.0.7:8080', 'http://localhost.example', 'http://[::2]'])(
  'OIDC_ISSUER must be https: %s',
  (issuer) => {
    expect(() => read({ ...others, OIDC_ISSUER: issuer })).toThrow('OIDC_ISSUER must be an https URL')
  },
)

test.each(['https://id.example', 'http://127.0.0.1:4000', 'http://localhost:4000/realm', 'http://[::1]:4000'])(
  'OIDC_ISSUER is https, or on this machine: %s',
  (issuer) => {
    expect(read({ ...others, OIDC_ISSUER: issuer }).oidc?.issuer).toBe(issuer)
  },
)

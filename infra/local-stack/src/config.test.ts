import { AppSettings } from '@workflow-service/app'
import { DispatcherSettings } from '@workflow-service/dispatcher'
import { GatewaySettings } from '@workflow-service/gateway'
import { RunnerSettings } from '@workflow-service/runner'
import { describe, expect, test } from '@jest/globals'
import { OWN_SETTINGS, readLocalConfig, readServiceConfigs, servicesEnv } from './config.ts'

const schemas = { dispatcher: DispatcherSettings, runner: RunnerSettings, gateway: GatewaySettings, app: AppSettings }
const own = new Set<string>(OWN_SETTINGS)

/** The first example of every setting that the local stack does not set itself. */
const given = Object.fromEntries(
  Object.values(schemas).flatMap(({ properties }) =>
    (Object.entries<object>(properties) as [string, { examples: unknown[] }][]).flatMap(([name, { examples }]) =>
      own.has(name) ? [] : [[name, String(examples[0])]],
    ),
  ),
)

const secrets = { INTERNAL_API_TOKEN: 'x'.repeat(32), SECRETS_KEY: `${'A'.repeat(43)}=` }
const ports = { dispatcher: 1, gateway: 2, app: 3 }
const envOfServices = (env: NodeJS.ProcessEnv) => servicesEnv(readLocalConfig(env), secrets, ports)

describe('the settings of the local stack', () => {
  test('are handed on to each service that has them in its schema', () => {
    const services = envOfServices(given)
    for (const [name, { properties }] of Object.entries(schemas)) {
      const expected = Object.keys(properties).filter((setting) => !own.has(setting))
      const got = services[name as keyof typeof schemas]
      // The demo's endpoint is on loopback, which is allowed in addition to the given subnets.
      expect(got).toMatchObject({
        ...Object.fromEntries(expected.map((setting) => [setting, given[setting]])),
        ...(name === 'dispatcher'
          ? { WEBHOOK_ALLOWED_SUBNETS: `127.0.0.0/8,::1/128,${given['WEBHOOK_ALLOWED_SUBNETS']}` }
          : {}),
      })
    }
    // The file of AGENT_MODELS is only an example, and no other model may be set beside it.
    const configs = readServiceConfigs(readLocalConfig({ ...given, AGENT_MODELS: '' }), secrets, ports)
    expect(configs.app.appUrl).toBe(given['APP_URL'])
  })

  test('that the local stack sets itself are not taken from the environment, and named', () => {
    const foreign = Object.fromEntries(OWN_SETTINGS.map((name) => [name, name === 'PORT' ? '8080' : 'foreign']))
    expect(JSON.stringify(envOfServices(foreign))).not.toContain('foreign')
    expect(readLocalConfig(foreign).unusedSettings).toEqual(OWN_SETTINGS.filter((name) => name !== 'PORT'))
  })

  test('that are not given have the defaults of the local stack', () => {
    expect(envOfServices({ APP_URL: '' }).app).toMatchObject({
      APP_URL: 'http://127.0.0.1:3',
      API_URL: 'http://127.0.0.1:2',
      DATABASE_POOL_SIZE: '10',
    })
  })
})

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { readSettings } from '../packages/service-kit/src/index.ts'
import { startCustomerEndpoint } from '../packages/testkit/src/start-customer-endpoint.ts'
import { SERVICE_NAMES, SERVICE_SETTINGS, type ServiceName, settingsOf } from './service-settings.ts'

interface ComposeService {
  image: string
  build?: { context: string; dockerfile: string }
  command?: string[]
  entrypoint?: string[]
  environment: Record<string, string>
  ports?: string[]
  healthcheck?: { test: string[] }
  networks: string[]
  container_name?: string
  depends_on?: Record<string, { condition: string }>
}

interface ExampleLine {
  name: string
  value: string
  isCommentedOut: boolean
  /** The comment lines above it. */
  comment: string
}

const root = join(import.meta.dirname, '..')
const composeText = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
const compose = parse(composeText, { merge: true }) as { services: Record<string, ComposeService> }
const example = readExample(readFileSync(join(root, '.env.example'), 'utf8'))
const secrets = example.filter((line) => !line.isCommentedOut)
const optional = example.filter((line) => line.isCommentedOut)

/** `${A}`, `${A:-default}` or `${A:?message}`. */
const VARIABLE = /\$\{(\w+)(?::([-?])([^}]*))?\}/g
/** Settings that docker-compose.yml leaves at their defaults: the ports inside the containers. */
const NOT_CONFIGURABLE = ['HOST', 'PORT', 'METRICS_PORT']
/** The setting that names the port of /readyz. */
const READY_PORT = { gateway: 'METRICS_PORT', dispatcher: 'PORT', runner: 'PORT', app: 'METRICS_PORT' } as const

describe('the settings of the containers', () => {
  test.each(SERVICE_NAMES)('are for the %s all that it reads, and no others', (name) => {
    const given = Object.keys(service(name).environment)
    const configurable = settingNames(name).filter((setting) => !NOT_CONFIGURABLE.includes(setting))
    expect(given.toSorted()).toEqual(configurable.toSorted())
  })

  test.each(SERVICE_NAMES)('are for the %s its defaults if .env holds only the secrets', (name) => {
    const { schema } = SERVICE_SETTINGS[name]
    const environment = environmentOf(name, makeSecrets())
    const withDefaults = defaultsOf(name)
    const others = Object.entries(environment).filter(([setting]) => !(setting in withDefaults))
    expect(readSettings(schema, environment)).toEqual(readSettings(schema, Object.fromEntries(others)))
  })

  test.each(SERVICE_NAMES)('are for the %s the values that .env.example shows, if they are set', (name) => {
    const shown = Object.fromEntries(optional.map((line) => [line.name, line.value]))
    const environment = environmentOf(name, { ...shown, ...makeSecrets() })
    // Its example is a file that is not on this machine.
    expect(() => SERVICE_SETTINGS[name].read({ ...environment, AGENT_MODELS: '' })).not.toThrow()
    const applied = settingNames(name).filter((setting) => setting in shown)
    expect(applied.map((setting) => environment[setting])).toEqual(applied.map((setting) => shown[setting]))
  })

  test.each(['migrate', 'wf'])('are for %s only settings that a service reads', (name) => {
    const known = SERVICE_NAMES.flatMap((each) => settingNames(each))
    expect(known).toEqual(expect.arrayContaining(Object.keys(service(name).environment)))
  })

  test('are for the dispatcher with infra/compact/docker-compose.yml those of dispatcher and runner', () => {
    const text = readFileSync(join(root, 'infra/compact/docker-compose.yml'), 'utf8')
    const { services } = parse(text) as { services: { dispatcher: ComposeService; runner: object } }
    const added = services.dispatcher.environment
    const { DISPATCHER_URL: _unused, ...ofRunner } = service('runner').environment
    expect({ ...service('dispatcher').environment, ...added }).toEqual({
      ...service('dispatcher').environment,
      ...ofRunner,
    })
    expect(Object.keys(added).filter((name) => name in service('dispatcher').environment)).toEqual([])
    expect(services.runner).toEqual({ deploy: { replicas: 0 } })
  })

  test('name the address at which the dispatcher listens', () => {
    const port = defaultPort('dispatcher', 'PORT')
    for (const name of ['runner', 'app', 'wf'])
      expect(service(name).environment['DISPATCHER_URL']).toBe(`http://dispatcher:${port}`)
  })
})

describe('.env.example', () => {
  test('has the variables of docker-compose.yml, each once, and no others', () => {
    const used = new Set(variablesIn(composeText).map((variable) => variable.name))
    expect(example.map((line) => line.name).toSorted()).toEqual([...used].toSorted())
  })

  test('leaves every secret empty, and docker-compose.yml rejects an empty one and names docs/operations.md', () => {
    expect(secrets.length).toBeGreaterThan(0)
    for (const { name, value } of secrets) {
      expect(value).toBe('')
      const messages = variablesIn(composeText).filter((each) => each.name === name && each.operator === '?')
      for (const { text } of messages) expect(text).toContain('docs/operations.md')
      expect(() => interpolate(composeText, { ...makeSecrets(), [name]: '' })).toThrow(name)
    }
  })

  test('shows the defaults of docker-compose.yml', () => {
    for (const { name, operator, text } of variablesIn(composeText)) {
      if (operator !== '-' || text === '') continue
      expect(optional.find((line) => line.name === name)).toMatchObject({ value: text })
    }
  })

  test('names the command that makes each secret, and docs/operations.md runs it', () => {
    const readme = readFileSync(join(root, 'docs/operations.md'), 'utf8')
    for (const { name, comment } of secrets) {
      const command = /openssl rand -\w+ \d+/.exec(comment)?.[0]
      expect([name, command]).toEqual([name, expect.any(String)])
      expect(readme).toContain(`-e "s|^${name}=$|&$(${command})|"`)
    }
  })
})

describe('the containers', () => {
  test('run existing files from one image', () => {
    for (const name of [...SERVICE_NAMES, 'migrate', 'wf']) {
      const { image, build, entrypoint = [], command = [] } = service(name)
      expect(image).toBe(service('gateway').image)
      expect(existsSync(join(root, build?.dockerfile ?? ''))).toBe(true)
      const [program, ...args] = [...entrypoint, ...command]
      const file = args.find((arg) => !arg.startsWith('--')) ?? ''
      expect(program).toBe('node')
      expect(existsSync(join(root, file.replace(/^\/app\//, '')))).toBe(true)
    }
  })

  test('publish only the public API, the application and RabbitMQ, on 127.0.0.1 by default', () => {
    const published = Object.entries(compose.services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => ({ name, port: interpolate(port, {}) })),
    )
    expect(published.filter(({ port }) => !port.startsWith('127.0.0.1:'))).toEqual([])
    const ofServices = published.filter(({ name }) => SERVICE_NAMES.includes(name as ServiceName))
    expect(ofServices).toEqual(
      (['gateway', 'app'] as const).map((name) => {
        const port = defaultPort(name, 'PORT')
        return { name, port: `127.0.0.1:${port}:${port}` }
      }),
    )
  })

  test('keep PostgreSQL on the internal network, and have no fixed names, so that they can be scaled', () => {
    expect(service('postgres').networks).toEqual(['backend'])
    expect(compose).toHaveProperty('networks.backend.internal', true)
    expect(Object.values(compose.services).filter((each) => each.container_name !== undefined)).toEqual([])
  })

  test.each(SERVICE_NAMES)('start the %s only on a migrated database, and check its readiness at its port', (name) => {
    expect(service(name).depends_on).toMatchObject({
      migrate: { condition: 'service_completed_successfully' },
      postgres: { condition: 'service_healthy' },
    })
    const url = /http:[^']+/.exec(service(name).healthcheck?.test.join(' ') ?? '')?.[0]
    expect(url).toBe(`http://127.0.0.1:${defaultPort(name, READY_PORT[name])}/readyz`)
  })

  test.each([
    ['ready', 200, 0],
    ['not ready', 503, 1],
  ])(
    'have health checks that end with the right status for a service that is %s',
    async (_state, status, exitStatus) => {
      await using endpoint = await startCustomerEndpoint({ answer: { status } })
      for (const name of SERVICE_NAMES) {
        const [kind, ...command] = service(name).healthcheck?.test ?? []
        expect(kind).toBe('CMD')
        const words = command.map((word) => word.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${endpoint.port}`))
        expect(await exitStatusOf(words)).toBe(exitStatus)
      }
      expect(await exitStatusOf(imageHealthcheck(), { PORT: String(endpoint.port) })).toBe(exitStatus)
    },
  )
})

function service(name: string): ComposeService {
  const found = compose.services[name]
  if (!found) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

function defaultPort(name: ServiceName, setting: 'PORT' | 'METRICS_PORT'): string {
  return String(defaultsOf(name)[setting])
}

function settingNames(name: ServiceName): string[] {
  return settingsOf(name).map((setting) => setting.name)
}

/** The settings of a service that have a default. */
function defaultsOf(name: ServiceName): Record<string, unknown> {
  const withDefault = settingsOf(name).filter(({ defaultValue }) => defaultValue !== undefined)
  return Object.fromEntries(withDefault.map((setting) => [setting.name, setting.defaultValue]))
}

/** The environment of a container, as docker compose makes it from .env. */
function environmentOf(name: string, env: Record<string, string>): Record<string, string> {
  const given = Object.entries(service(name).environment)
  return Object.fromEntries(given.map(([setting, value]) => [setting, interpolate(value, env)]))
}

/** Creates the secrets with the commands of .env.example. */
function makeSecrets(): Record<string, string> {
  return Object.fromEntries(
    secrets.map(({ name, comment }) => {
      const [, encoding, bytes] = /openssl rand -(hex|base64) (\d+)/.exec(comment) ?? []
      return [name, randomBytes(Number(bytes)).toString(encoding as 'hex' | 'base64')]
    }),
  )
}

function variablesIn(text: string): { name: string; operator: string; text: string }[] {
  return [...text.matchAll(VARIABLE)].map(([, name = '', operator = '', rest = '']) => ({ name, operator, text: rest }))
}

/** Does what docker compose does with variables. */
function interpolate(text: string, env: Record<string, string>): string {
  const done = text.replaceAll(VARIABLE, (_all, name: string, operator = '', rest = '') => {
    if (env[name]) return env[name]
    if (operator === '?') throw new Error(`${name} ${rest}`)
    return operator === '-' ? rest : ''
  })
  if (done.includes('$')) throw new Error(`This form of interpolation is not supported here: ${done}`)
  return done
}

function readExample(text: string): ExampleLine[] {
  const lines: ExampleLine[] = []
  let comment = ''
  for (const line of text.split('\n')) {
    const [, hash, name, value] = /^(#?)([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? []
    if (name) lines.push({ name, value: value ?? '', isCommentedOut: hash === '#', comment })
    else comment = line === '' ? '' : `${comment}${line}\n`
  }
  return lines
}

function imageHealthcheck(): string[] {
  const dockerfile = readFileSync(join(root, 'infra/Dockerfile'), 'utf8').replaceAll('\\\n', '')
  return JSON.parse(/^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[]
}

async function exitStatusOf(
  [program, ...words]: readonly string[],
  env: Record<string, string> = {},
): Promise<number | null> {
  expect(program).toBe('node')
  const child = spawn(process.execPath, words, { env, stdio: 'ignore' })
  await once(child, 'exit')
  return child.exitCode
}

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { readSettings } from '../packages/service-kit/src/index.ts'
import { defaultsOf, serviceNames as services, type ServiceName, settingNames, settingsOf } from './settings-of.ts'

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
  /** The comment above it. */
  comment: string
}

const root = join(import.meta.dirname, '..')
const composeText = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
const compose = parse(composeText, { merge: true }) as { services: Record<string, ComposeService> }
const example = readExample(readFileSync(join(root, '.env.example'), 'utf8'))
const secrets = example.filter((line) => !line.isCommentedOut)
const optional = example.filter((line) => line.isCommentedOut)

/** What decides where a service listens: docker-compose.yml, not .env. */
const placement = ['HOST', 'PORT', 'METRICS_PORT']
/** Where each service answers /readyz. */
const readyPort = { gateway: 'METRICS_PORT', dispatcher: 'PORT', runner: 'PORT' } as const

describe('the settings of the containers', () => {
  test.each(services)('%s is given only settings that it reads', (name) => {
    expect(settingNames(name)).toEqual(expect.arrayContaining(Object.keys(service(name).environment)))
  })

  test.each(services)('%s can be given every setting that it reads', (name) => {
    const given = Object.keys(service(name).environment)
    expect(settingNames(name).filter((setting) => !placement.includes(setting) && !given.includes(setting))).toEqual([])
  })

  test.each(services)('%s has its defaults when .env holds the secrets and nothing else', (name) => {
    const settings = readSettings(settingsOf[name].schema, environmentOf(name, madeSecrets()))
    expect(settings).toMatchObject(defaultsOf(name))
  })

  test.each(services)('%s takes every value that .env.example shows', (name) => {
    const shown = Object.fromEntries(optional.map((line) => [line.name, line.value]))
    const environment = environmentOf(name, { ...shown, ...madeSecrets() })
    const settings: Record<string, unknown> = readSettings(settingsOf[name].schema, environment)
    expect(() => settingsOf[name].read(environment)).not.toThrow()
    const taken = settingNames(name).filter((setting) => setting in shown)
    expect(taken.map((setting) => String(settings[setting]))).toEqual(taken.map((setting) => shown[setting]))
  })

  test.each(['migrate', 'wf'])('%s is given only what services read too', (name) => {
    const known = services.flatMap((each) => settingNames(each))
    expect(known).toEqual(expect.arrayContaining(Object.keys(service(name).environment)))
  })

  test('whoever talks to the dispatcher finds it where it listens', () => {
    const port = defaultPort('dispatcher', 'PORT')
    for (const name of ['runner', 'wf'])
      expect(service(name).environment['DISPATCHER_URL']).toBe(`http://dispatcher:${port}`)
  })
})

describe('.env.example', () => {
  test('has the names that docker-compose.yml uses, each once, and no others', () => {
    const used = new Set(variablesIn(composeText).map((variable) => variable.name))
    expect(example.map((line) => line.name).toSorted()).toEqual([...used].toSorted())
  })

  test('leaves every secret empty, and docker-compose.yml refuses it empty and says where help is', () => {
    expect(secrets.length).toBeGreaterThan(0)
    for (const { name, value } of secrets) {
      expect(value).toBe('')
      const messages = variablesIn(composeText).filter(
        (variable) => variable.name === name && variable.operator === '?',
      )
      expect([name, messages.length]).not.toEqual([name, 0])
      for (const { text } of messages) expect(text).toContain('README.md')
      expect(() => interpolate(composeText, { ...madeSecrets(), [name]: '' })).toThrow(name)
    }
  })

  test('shows the defaults that docker-compose.yml itself has', () => {
    for (const { name, operator, text } of variablesIn(composeText)) {
      if (operator !== '-' || text === '') continue
      expect(optional.find((line) => line.name === name)).toMatchObject({ value: text })
    }
  })

  test('shows the defaults of the settings that have one', () => {
    const defaults = Object.assign({}, ...services.map((name) => defaultsOf(name)).toReversed()) as Record<
      string,
      unknown
    >
    const withDefault = optional.filter(({ name }) => (defaults[name] ?? '') !== '')
    expect(withDefault.map(({ name, value }) => [name, value])).toEqual(
      withDefault.map(({ name }) => [name, String(defaults[name])]),
    )
  })

  test('says above every secret how to make it, and README.md has the same line', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    for (const { name, comment } of secrets) {
      const command = /openssl rand -\w+ \d+/.exec(comment)?.[0]
      expect([name, command]).toEqual([name, expect.any(String)])
      expect(readme).toContain(`-e "s|^${name}=$|&$(${command})|"`)
    }
  })
})

describe('the containers', () => {
  test('run files that exist, from the one image', () => {
    for (const name of [...services, 'migrate', 'wf']) {
      const { image, build, entrypoint = [], command = [] } = service(name)
      expect(image).toBe(service('gateway').image)
      expect(existsSync(join(root, build?.dockerfile ?? ''))).toBe(true)
      const [program, file = ''] = [...entrypoint, ...command]
      expect(program).toBe('node')
      expect(existsSync(join(root, file.replace(/^\/app\//, '')))).toBe(true)
    }
  })

  test('publish the public API, on its own port, and to the machine itself what tests need; never metrics', () => {
    const published = Object.entries(compose.services).flatMap(([name, { ports = [] }]) =>
      ports.map((port) => ({ name, port: interpolate(port, {}) })),
    )
    const publicPort = defaultPort('gateway', 'PORT')
    expect(published.filter(({ port }) => !port.startsWith('127.0.0.1:'))).toEqual([])
    expect(published.filter(({ name }) => services.includes(name as 'gateway'))).toEqual([
      { name: 'gateway', port: `127.0.0.1:${publicPort}:${publicPort}` },
    ])
  })

  test('keep PostgreSQL on the network that has no way out, and can be scaled', () => {
    expect(service('postgres').networks).toEqual(['backend'])
    expect(compose).toHaveProperty('networks.backend.internal', true)
    expect(Object.values(compose.services).filter((each) => each.container_name !== undefined)).toEqual([])
  })

  test.each(services)('%s starts only on a migrated database', (name) => {
    expect(service(name).depends_on).toMatchObject({
      migrate: { condition: 'service_completed_successfully' },
      postgres: { condition: 'service_healthy' },
    })
  })

  test.each(services)('%s is asked for its readiness where it answers', (name) => {
    const url = /http:[^']+/.exec(service(name).healthcheck?.test.join(' ') ?? '')?.[0]
    expect(url).toBe(`http://127.0.0.1:${defaultPort(name, readyPort[name])}/readyz`)
  })

  test.each([
    ['ready', 200, 0],
    ['not ready', 503, 1],
  ])('a health check of a service that is %s ends with the right status', async (_state, status, exitStatus) => {
    const server = createServer((_req, res) => res.writeHead(status).end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const name of services) {
      const [kind, ...command] = service(name).healthcheck?.test ?? []
      expect(kind).toBe('CMD')
      expect(await exitStatusOf(command.map((word) => word.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`)))).toBe(
        exitStatus,
      )
    }
    const [program = '', ...words] = imageHealthcheck()
    expect(await exitStatusOf([program, ...words], { PORT: String(port) })).toBe(exitStatus)
    server.close()
    server.closeAllConnections()
  })
})

function service(name: string): ComposeService {
  const found = compose.services[name]
  if (!found) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

function defaultPort(name: ServiceName, setting: 'PORT' | 'METRICS_PORT'): string {
  return String(defaultsOf(name)[setting])
}

/** The environment that a container gets, as docker compose makes it out of .env. */
function environmentOf(name: string, env: Record<string, string>): Record<string, string> {
  const given = Object.entries(service(name).environment)
  return Object.fromEntries(given.map(([setting, value]) => [setting, interpolate(value, env)]))
}

/** The secrets, made as .env.example says. */
function madeSecrets(): Record<string, string> {
  return Object.fromEntries(
    secrets.map(({ name, comment }) => {
      const [, encoding, bytes] = /openssl rand -(hex|base64) (\d+)/.exec(comment) ?? []
      return [name, randomBytes(Number(bytes)).toString(encoding as 'hex' | 'base64')]
    }),
  )
}

function variablesIn(text: string): { name: string; operator: '' | '-' | '?'; text: string }[] {
  return [...text.matchAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g)].map(([, name = '', operator = '', rest = '']) => ({
    name,
    operator: operator as '' | '-' | '?',
    text: rest,
  }))
}

/** The three forms of docker compose's interpolation that the file uses: ${A}, ${A:-default} and ${A:?message}. */
function interpolate(text: string, env: Record<string, string>): string {
  const done = text.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_all, name: string, operator = '', rest = '') => {
    if (env[name]) return env[name]
    if (operator === '?') throw new Error(`${name} ${rest}`)
    return operator === '-' ? rest : ''
  })
  if (done.includes('$')) throw new Error(`What does this mean? ${done}`)
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

async function exitStatusOf([program, ...words]: string[], env: Record<string, string> = {}): Promise<number | null> {
  expect(program).toBe('node')
  const child = spawn(process.execPath, words, { env, stdio: 'ignore' })
  await once(child, 'exit')
  return child.exitCode
}

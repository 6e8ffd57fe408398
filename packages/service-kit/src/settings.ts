import { isIP } from 'node:net'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { Static, TObject } from 'typebox'

/** Every fault of the environment at once: a line for each setting, with what was wrong and an example. */
export class SettingsError extends Error {
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The settings are not usable:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.name = 'SettingsError'
    this.faults = faults
  }
}

/** The formats that settings may name, each with the words for a value that is not of it. */
const formats: Record<string, { check: (text: string) => boolean; words: string }> = {
  'postgres-url': {
    check: (text) => hasScheme(text, ['postgres:', 'postgresql:']),
    words: 'must be a postgres:// URL',
  },
  'amqp-url': { check: (text) => hasScheme(text, ['amqp:', 'amqps:']), words: 'must be an amqp:// or amqps:// URL' },
  'redis-url': {
    check: (text) => hasScheme(text, ['redis:', 'rediss:']),
    words: 'must be a redis:// or rediss:// URL',
  },
  'http-url': { check: (text) => hasScheme(text, ['http:', 'https:']), words: 'must be an http:// or https:// URL' },
  'cidr-list': {
    check: (text) => splitList(text).every(isCidr),
    words: 'must be a comma-separated list of networks in CIDR form',
  },
  'base64-32-list': {
    check: (text) => splitList(text).length > 0 && splitList(text).every(isBase64Of32Bytes),
    words: 'must be base64 of exactly 32 bytes, or a comma-separated list of such keys',
  },
  'token-list': {
    check: (text) => splitList(text).length > 0 && splitList(text).every((token) => token.length >= 32),
    words: 'must have at least 32 characters (each token, where several are separated by commas)',
  },
  'origin-list': {
    check: (text) => splitList(text).every((origin) => URL.canParse(origin) && new URL(origin).origin === origin),
    words: 'must be a comma-separated list of origins',
  },
}

// That the services' schemas are valid themselves is for the tests: compiling what checks it takes a tenth of the boot.
const ajv = new Ajv2020({
  allErrors: true,
  coerceTypes: true,
  useDefaults: true,
  strict: true,
  verbose: true,
  validateSchema: false,
})
for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format.check)

/**
 * The settings that the schema names, out of the environment: text becomes numbers and booleans, defaults are filled in,
 * an empty value counts as absent. Each property needs a description and an example; a secret is `writeOnly` and its
 * value is never repeated.
 * @throws SettingsError with every fault at once.
 */
export function readSettings<Schema extends TObject>(schema: Schema, env: NodeJS.ProcessEnv): Static<Schema> {
  const settings: Record<string, unknown> = {}
  for (const name of Object.keys(schema.properties)) {
    const value = env[name]?.trim()
    if (value !== undefined && value !== '') settings[name] = value
  }
  const check = ajv.compile<Static<Schema>>(schema)
  if (check(settings)) return settings
  const faults = new Map<string, string>()
  for (const error of check.errors ?? []) {
    const name =
      error.keyword === 'required' ? String(error.params['missingProperty']) : (error.instancePath.split('/')[1] ?? '')
    if (name === '' || faults.has(name)) continue
    faults.set(name, `${name} ${describeFault(error)}${exampleOf(schema, name)}`)
  }
  throw new SettingsError([...faults.values()])
}

/** The items of a comma-separated setting, without white space and empty items. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function describeFault(error: ErrorObject): string {
  if (error.keyword === 'required') return 'is missing'
  const property = error.parentSchema as { writeOnly?: boolean; description?: string } | undefined
  const given = property?.writeOnly || error.data === undefined ? '' : ` (it is ${JSON.stringify(error.data)})`
  return `${wordsFor(error)}${given}`
}

function wordsFor(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'format':
      return formats[String(params['format'])]?.words ?? 'has the wrong form'
    case 'type':
      return `must be ${params['type'] === 'integer' ? 'a whole number' : `a ${String(params['type'])}`}`
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).map(String).join(', ')}`
    case 'minimum':
      return `must be at least ${String(params['limit'])}`
    case 'maximum':
      return `must be at most ${String(params['limit'])}`
    case 'minLength':
      return `must have at least ${String(params['limit'])} characters`
    default:
      return error.message ?? 'is not valid'
  }
}

function exampleOf(schema: TObject, name: string): string {
  const { [name]: property }: Record<string, { examples?: (string | number)[]; description?: string }> =
    schema.properties
  const example = property?.examples?.[0]
  const purpose = property?.description ? ` ${property.description}` : ''
  return `.${purpose}${example === undefined ? '' : ` Example: ${name}=${String(example)}`}`
}

function hasScheme(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol)
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/')
  const family = isIP(address)
  return family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

function isBase64Of32Bytes(text: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(text)
}

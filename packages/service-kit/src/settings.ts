import { splitHosts, toFieldErrors } from '@workflow-service/contract'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { TObject } from 'typebox'
import type { Static } from '@workflow-service/contract/type'
import { SHARED_PARSERS } from './shared-settings.ts'
import { splitList } from './split-list.ts'

/** Every error of the settings at once: a line for each setting, with what is wrong and an example. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  readonly errors: readonly string[]

  constructor(errors: readonly string[]) {
    super(`The settings are not valid:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
    this.errors = errors
  }
}

/** The errors with which settings are refused; none if they are read. */
export function settingsErrors(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}

/** The formats that a setting's schema may name, each with the text for a value that does not match. */
const formats: Record<string, { check: (text: string) => boolean; message: string }> = {
  'postgres-url': {
    check: (text) => splitHosts(text).every((url) => hasScheme(url, ['postgres:', 'postgresql:'])),
    message: 'must be a postgres:// URL',
  },
  'amqp-url': {
    check: (text) => splitHosts(text).every((url) => hasScheme(url, ['amqp:', 'amqps:'])),
    message: 'must be an amqp:// or amqps:// URL',
  },
  'redis-url': {
    check: (text) => hasScheme(text, ['redis:', 'rediss:']),
    message: 'must be a redis:// or rediss:// URL',
  },
  'http-url': { check: (text) => hasScheme(text, ['http:', 'https:']), message: 'must be an http:// or https:// URL' },
  'base64-32-list': {
    check: (text) => splitList(text).length > 0 && splitList(text).every(isBase64Of32Bytes),
    message: 'must be base64 of exactly 32 bytes, or a comma-separated list of such keys',
  },
  'token-list': {
    check: (text) => splitList(text).length > 0 && splitList(text).every((token) => token.length >= 32),
    message: 'must have at least 32 characters (each token, where several are separated by commas)',
  },
  'origin-list': {
    check: (text) => splitList(text).every((origin) => URL.canParse(origin) && new URL(origin).origin === origin),
    message: 'must be a comma-separated list of origins',
  },
}

// Tests check that the schemas themselves are valid: compiling the meta-schema would take a tenth of a service's boot.
const reading = { allErrors: true, coerceTypes: true, useDefaults: true, verbose: true }
// `strictNumbers` would skip the limits of a setting that is `Infinity`.
const ajv = new Ajv2020({ ...reading, strict: true, strictNumbers: false, validateSchema: false })
for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format.check)

/**
 * One function for each setting whose text it reads; the message of an error that it throws continues the setting's
 * name.
 */
export type SettingParsers<Parsed extends object> = { readonly [Name in keyof Parsed]: (text: string) => Parsed[Name] }

type SharedParsed<Names extends PropertyKey> = {
  [Name in keyof typeof SHARED_PARSERS & Names]: ReturnType<(typeof SHARED_PARSERS)[Name]>
}

/** The settings of a schema, of which parsers have read some. */
export type Settings<Schema extends TObject, Parsed extends object = object> = Omit<
  Static<Schema>,
  keyof Parsed | keyof typeof SHARED_PARSERS
> &
  NoInfer<Parsed> &
  SharedParsed<keyof Static<Schema>>

/**
 * Reads the settings that the schema names from the environment: text becomes numbers and booleans, defaults are filled
 * in, an empty value counts as absent. Each property needs a description and an example. The value of a `writeOnly`
 * setting is a secret and never part of an error.
 * @throws SettingsError with every error at once: `otherErrors`, those of the schema, and those of the parsers.
 */
export function readSettings<Schema extends TObject, Parsed extends object = object>(
  schema: Schema,
  env: NodeJS.ProcessEnv,
  { parsers, otherErrors = [] }: { parsers?: SettingParsers<Parsed>; otherErrors?: readonly string[] } = {},
): Settings<Schema, Parsed> {
  const settings: Record<string, unknown> = {}
  for (const name of Object.keys(schema.properties)) {
    const value = env[name]?.trim()
    if (value !== undefined && value !== '') settings[name] = value
  }
  const errors = schemaErrors(schema, settings)
  for (const [name, parse] of Object.entries<(text: string) => unknown>({ ...SHARED_PARSERS, ...parsers })) {
    const { [name]: text } = settings
    if (errors.has(name) || typeof text !== 'string') continue
    try {
      settings[name] = parse(text)
    } catch (error) {
      errors.set(name, error instanceof Error ? error.message : String(error))
    }
  }
  if (errors.size === 0 && otherErrors.length === 0) return settings as Settings<Schema, Parsed>
  const lines = [...errors].map(([name, message]) => `${name} ${message}${describeSetting(schema, name)}`)
  throw new SettingsError([...new Set([...otherErrors, ...lines])])
}

/** Validates the settings in place, and gives the first error of each setting by its name. */
function schemaErrors(schema: TObject, settings: Record<string, unknown>): Map<string, string> {
  const validate = ajv.compile(schema)
  const given = { ...settings }
  const errors = validate(settings) ? [] : toFieldErrors(validate.errors ?? [], [], describeViolation)
  // Ajv takes "Infinity" and "1e999" for numbers: a limit may refuse them, but not every setting has one.
  const infinite = Object.keys(settings)
    .filter((name) => [Infinity, -Infinity].includes(settings[name] as number))
    .map((field) => ({ field, code: 'infinite', message: 'must be a finite number' }))
  return new Map(
    [...infinite, ...errors].map(({ field, code, message }) => {
      const isHidden = code === 'missing' || (schema.properties[field] as { writeOnly?: boolean }).writeOnly
      return [field, isHidden ? message : `${message} (it is ${JSON.stringify(given[field])})`]
    }),
  )
}

function describeViolation({ keyword, params }: ErrorObject): string | undefined {
  if (keyword === 'required') return 'is missing'
  return keyword === 'format' ? formats[String(params['format'])]?.message : undefined
}

/** The end of a line about a setting: what it is for, and an example. */
export function describeSetting(schema: TObject, name: string): string {
  const { [name]: property }: Record<string, { examples?: (string | number)[]; description?: string }> =
    schema.properties
  const example = property?.examples?.[0]
  const purpose = property?.description ? ` ${property.description}` : ''
  return `.${purpose}${example === undefined ? '' : ` Example: ${name}=${String(example)}`}`
}

function hasScheme(text: string, schemes: readonly string[]): boolean {
  return URL.canParse(text) && schemes.includes(new URL(text).protocol)
}

function isBase64Of32Bytes(text: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(text)
}

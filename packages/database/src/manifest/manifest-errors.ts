import {
  type AutoRunFrequency,
  type FieldError,
  findExampleErrors,
  findFileSizeError,
  findLookupErrors,
  findRulesNameError,
  isJsonObject,
  isStorableText,
  type LookupIn,
  type Manifest,
  type ManifestFieldError,
  findTimingErrors,
  type ScheduleTiming,
} from '@workflow-service/contract'
import { findManifestShapeErrors, toManifestFieldError } from '@workflow-service/contract/manifest'
import { foldCase } from '../connection/index.ts'
import { prefixOfApiKey } from '../organizations/index.ts'
import { normalizedName } from '../sources/index.ts'

/** An error in one of the manifests that are applied together. */
export interface ManifestViolation extends ManifestFieldError {
  readonly manifestIndex: number
}

/** Manifests cannot be applied, and nothing was written. Has every violation with its path. */
export class ManifestError extends Error {
  override name = 'ManifestError'
  readonly violations: readonly ManifestViolation[]

  constructor(violations: readonly ManifestViolation[]) {
    super(violations.map(({ path, message }) => `${path === '' ? 'the manifest' : path}: ${message}`).join('\n'))
    this.violations = violations
  }
}

/** An object of a manifest whose shape may be wrong: its other rules are checked all the same. */
type Loose = Record<string, unknown>
type Report = (path: string, message: string) => void

/**
 * Every violation that can be found without the database: the shape, uniqueness, references, and formats that a JSON
 * schema cannot express. At most one for each path (contract README, "Manifest").
 */
export function manifestErrors(value: unknown): ManifestFieldError[] {
  const violations = findManifestShapeErrors(value)
  const known = new Set(violations.map((violation) => violation.path))
  const report: Report = (path, message) => {
    if (known.has(path)) return
    known.add(path)
    violations.push({ path, message })
  }
  const manifest = asObject(value)
  const itemsOf = (list: string) => asItems(manifest[list])
  checkUsers(itemsOf('users'), report)
  checkApiKeys(itemsOf('api_keys'), report)
  checkWebhookSources(itemsOf('webhook_sources'), report)
  // Their rules need the shape.
  if (violations.length === 0) checkLookups(itemsOf('lookups') as unknown as LookupIn[], report)
  for (const list of ['webhook_sources', 'lookups']) {
    checkUnique(textsAt(list, itemsOf(list), 'name', normalizedName), report)
  }
  for (const list of ['webhook_sources', 'lookups', 'workflows', 'sessions']) {
    checkUnique(idsAt(list, itemsOf(list)), report)
  }
  checkWorkflows(itemsOf('workflows'), report)
  return violations
}

/** Returns the value as a manifest. @throws ManifestError with every violation. */
export function toManifest(value: unknown): Manifest {
  const violations = manifestErrors(value)
  if (violations.length > 0)
    throw new ManifestError(violations.map((violation) => ({ ...violation, manifestIndex: 0 })))
  return value as Manifest
}

const isEmail = (text: string) => /^[^\s@]+@[^\s@]+$/.test(text)
const isKey = (text: string) => prefixOfApiKey(text) !== undefined
const isLine = (text: string) => !/\p{Cc}/u.test(text)
const isUrl = (text: string) => text === '' || (/^https?:\/\//i.test(text) && URL.canParse(text))

/** PostgreSQL has no year 0, and reads no time zone beyond the year 9999. */
function hasYear(time: string): boolean {
  const year = new Date(time).getUTCFullYear()
  return !(year < 1 || year > 9999)
}

function checkUsers(users: readonly Loose[], report: Report): void {
  const emails = textsAt('users', users, 'email')
  checkTexts(emails, isEmail, report, 'must be an email address such as ada@acme.test')
  checkUnique(emails, report)
  checkUnique(textsAt('users', users, 'email', foldCase), report, 'they differ in case only, and belong to one person')
}

function checkApiKeys(keys: readonly Loose[], report: Report): void {
  checkTexts(textsAt('api_keys', keys, 'key'), isKey, report, `${KEY_FORMAT}; leave it out to create one`)
  const names = textsAt('api_keys', keys, 'name')
  checkTexts(names, isLine, report, 'must be one line, without tabs and other control characters')
  checkUnique(names, report)
  checkUnique(
    textsAt('api_keys', keys, 'key', (key) => prefixOfApiKey(key) ?? key),
    report,
  )
}

const KEY_FORMAT =
  'is not an API key: those are wfk_ + 8 letters or digits + _ + 32 more + a checksum of 6, which does not fit here'

function checkWebhookSources(sources: readonly Loose[], report: Report): void {
  checkTexts(textsAt('webhook_sources', sources, 'endpoint_url'), isUrl, report, 'must be an https:// or http:// URL')
  for (const [index, { example_request_body: example }] of sources.entries()) {
    if (example === undefined) continue
    reportFields(findExampleErrors(example, `webhook_sources.${index}.example_request_body`), report)
  }
}

function checkLookups(lookups: readonly LookupIn[], report: Report): void {
  for (const [index, lookup] of lookups.entries()) {
    const ofEntry = (error: FieldError) => ({ ...error, field: `lookups.${index}.${error.field}` })
    reportFields(findLookupErrors(lookup).map(ofEntry), report)
  }
}

function reportFields(errors: readonly FieldError[], report: Report): void {
  for (const { path, message } of errors.map(toManifestFieldError)) report(path, message)
}

function checkWorkflows(workflows: readonly Loose[], report: Report): void {
  const nameless = textsAt('workflows', workflows, 'name').filter((_, index) => workflows[index]?.['id'] === undefined)
  checkUnique(nameless, report, 'give each an id, or another name')
  const triggerIds: Entry[] = []
  const fileIds: Entry[] = []
  for (const [index, workflow] of workflows.entries()) {
    const path = `workflows[${index}]`
    const triggers = asItems(workflow['triggers'])
    const files = asItems(workflow['files'])
    checkAutoRun(`${path}.auto_run`, workflow['auto_run'], report)
    checkTimes(path, workflow, report)
    checkUnique(
      asList(workflow['users']).map((user, position) => ({
        path: `${path}.users[${position}]`,
        key: typeof user === 'string' ? foldCase(user) : user,
      })),
      report,
    )
    for (const [position, trigger] of triggers.entries()) checkTrigger(`${path}.triggers[${position}]`, trigger, report)
    checkFiles(`${path}.files`, files, report)
    triggerIds.push(...idsAt(`${path}.triggers`, triggers))
    fileIds.push(...idsAt(`${path}.files`, files))
  }
  checkUnique(triggerIds, report)
  checkUnique(fileIds, report)
}

function checkAutoRun(path: string, value: unknown, report: Report): void {
  const { enabled, frequency, timing } = asObject(value)
  if (enabled === true && (frequency ?? null) === null) {
    report(`${path}.frequency`, 'is missing: hourly, daily, weekly or monthly, since the schedule is enabled')
  }
  if (enabled === null && (frequency ?? null) !== null) {
    report(`${path}.enabled`, 'must be true or false where a frequency is given')
  }
  if (timing === undefined || timing === null) return
  for (const { field, message } of findTimingErrors(frequency as AutoRunFrequency | null, timing as ScheduleTiming)) {
    report(`${path}.${field}`, message)
  }
}

function checkTrigger(path: string, trigger: Loose, report: Report): void {
  checkTimes(path, trigger, report)
  checkUnique(textsAt(`${path}.events`, asItems(trigger['events']), 'slug'), report)
  if (typeof trigger['filters'] === 'object' && !isStorableJson(trigger['filters'])) {
    report(`${path}.filters`, 'must be valid Unicode text without NUL or lone surrogates, throughout')
  }
  for (const [index, { type, id }] of asItems(trigger['subagent_sources']).entries()) {
    if (type === 'platform_internal' && typeof id === 'string') {
      report(`${path}.subagent_sources[${index}].id`, 'must be left out where the type is platform_internal')
    }
  }
}

function checkFiles(path: string, files: readonly Loose[], report: Report): void {
  const locations: Entry[] = []
  for (const [index, { name, path: folders = [], content }] of files.entries()) {
    const sizeError = typeof content === 'string' && findFileSizeError(String(name), content)
    if (sizeError) report(`${path}[${index}].content`, sizeError)
    if (typeof name === 'string' && Array.isArray(folders)) {
      locations.push({ path: `${path}[${index}]`, key: [...(folders as unknown[]), name].join('/') })
      const nameError = findRulesNameError({ name, path: folders.map(String) })
      if (nameError) report(`${path}[${index}].${nameError.field}`, nameError.message)
    }
  }
  checkUnique(locations, report, 'two files cannot be in the same place')
}

function checkTimes(path: string, item: Loose, report: Report): void {
  const times = ['created_at', 'updated_at'].map((name) => ({ path: `${path}.${name}`, key: item[name] }))
  checkTexts(times, hasYear, report, 'must be in the years 1 to 9999 (UTC)')
}

/** A value that is checked if it is a text. */
interface Entry {
  readonly path: string
  readonly key: unknown
}

function checkTexts(
  entries: readonly Entry[],
  isRight: (text: string) => boolean,
  report: Report,
  message: string,
): void {
  for (const { path, key } of entries) if (typeof key === 'string' && !isRight(key)) report(path, message)
}

function checkUnique(entries: readonly Entry[], report: Report, advice = ''): void {
  const first = new Map<string, string>()
  for (const { path, key } of entries) {
    if (typeof key !== 'string') continue
    const earlier = first.get(key)
    if (earlier === undefined) first.set(key, path)
    else report(path, `is the same as ${earlier}${advice && `: ${advice}`}`)
  }
}

function textsAt(path: string, items: readonly Loose[], name: string, toKey = (text: string) => text): Entry[] {
  return items.map((item, index) => {
    const text = item[name]
    return { path: `${path}[${index}].${name}`, key: typeof text === 'string' ? toKey(text) : undefined }
  })
}

function idsAt(path: string, items: readonly Loose[]): Entry[] {
  return textsAt(path, items, 'id', (id) => id.toLowerCase())
}

function asObject(value: unknown): Loose {
  return isJsonObject(value) ? value : {}
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function asItems(value: unknown): Loose[] {
  return asList(value).map(asObject)
}

function isStorableJson(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, item]) => isStorableText(name) && isStorableJson(item))
}

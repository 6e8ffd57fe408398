import {
  findExampleErrors,
  findFileSizeError,
  findLookupErrors,
  findRulesNameError,
  isJsonObject,
  isStorableText,
  type LookupIn,
  type Manifest,
  type ManifestFieldError,
  type AutoRunFrequency,
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
  checkUsers(manifest, report)
  checkApiKeys(manifest, report)
  checkWebhookSources(manifest, report)
  checkLookups(manifest, violations.length === 0, report)
  checkWorkflows(manifest, report)
  checkUnique(idsAt('sessions', asItems(manifest['sessions'])), report)
  return violations
}

/** Returns the value as a manifest. @throws ManifestError with every violation. */
export function toManifest(value: unknown): Manifest {
  const violations = manifestErrors(value)
  if (violations.length > 0)
    throw new ManifestError(violations.map((violation) => ({ ...violation, manifestIndex: 0 })))
  return value as Manifest
}

function checkUsers(manifest: Loose, report: Report): void {
  const users = asItems(manifest['users'])
  for (const [index, { email }] of users.entries()) {
    if (typeof email === 'string' && !/^[^\s@]+@[^\s@]+$/.test(email)) {
      report(`users[${index}].email`, 'must be an email address such as ada@acme.test')
    }
  }
  checkUnique(textsAt('users', users, 'email'), report)
  checkUnique(textsAt('users', users, 'email', foldCase), report, 'they differ in case only, and belong to one person')
}

function checkApiKeys(manifest: Loose, report: Report): void {
  const keys = asItems(manifest['api_keys'])
  for (const [index, { key }] of keys.entries()) {
    if (typeof key === 'string' && prefixOfApiKey(key) === undefined) {
      report(`api_keys[${index}].key`, `${KEY_FORMAT}; leave it out to create one`)
    }
  }
  for (const [index, { name }] of keys.entries()) {
    if (typeof name === 'string' && /\p{Cc}/u.test(name)) {
      report(`api_keys[${index}].name`, 'must be one line, without tabs and other control characters')
    }
  }
  checkUnique(textsAt('api_keys', keys, 'name'), report)
  const prefixes = textsAt('api_keys', keys, 'key', (key) => prefixOfApiKey(key) ?? key)
  checkUnique(prefixes, report)
}

const KEY_FORMAT =
  'is not an API key: those are wfk_ + 8 letters or digits + _ + 32 more + a checksum of 6, which does not fit here'

function checkWebhookSources(manifest: Loose, report: Report): void {
  const sources = asItems(manifest['webhook_sources'])
  for (const [index, source] of sources.entries()) {
    const url = source['endpoint_url']
    if (typeof url === 'string' && url !== '' && !isHttpUrl(url)) {
      report(`webhook_sources[${index}].endpoint_url`, 'must be an https:// or http:// URL')
    }
    const example = source['example_request_body']
    if (example === undefined) continue
    for (const violation of findExampleErrors(example, `webhook_sources.${index}.example_request_body`)) {
      const { path, message } = toManifestFieldError(violation)
      report(path, message)
    }
  }
  checkUnique(idsAt('webhook_sources', sources), report)
  checkUnique(textsAt('webhook_sources', sources, 'name', normalizedName), report)
}

function checkLookups(manifest: Loose, hasShape: boolean, report: Report): void {
  const lookups = asItems(manifest['lookups'])
  for (const [index, lookup] of lookups.entries()) {
    if (!hasShape) break
    for (const violation of findLookupErrors(lookup as unknown as LookupIn)) {
      const { path, message } = toManifestFieldError({ ...violation, field: `lookups.${index}.${violation.field}` })
      report(path, message)
    }
  }
  checkUnique(idsAt('lookups', lookups), report)
  checkUnique(textsAt('lookups', lookups, 'name', normalizedName), report)
}

function checkWorkflows(manifest: Loose, report: Report): void {
  const workflows = asItems(manifest['workflows'])
  checkUnique(idsAt('workflows', workflows), report)
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

/** JavaScript has a year 0, PostgreSQL does not. */
function checkTimes(path: string, item: Loose, report: Report): void {
  for (const name of ['created_at', 'updated_at']) {
    const time = item[name]
    if (typeof time === 'string' && new Date(time).getUTCFullYear() < 1) {
      report(`${path}.${name}`, 'must be in the year 1 or later')
    }
  }
}

interface Entry {
  path: string
  /** The value that must be unique. Only strings are compared. */
  key: unknown
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

function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}

function isStorableJson(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, item]) => isStorableText(name) && isStorableJson(item))
}

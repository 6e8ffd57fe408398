import { type FieldError, type Manifest, UUID_PATTERN, type WebhookSourceIn } from '@workflow-service/contract'
import { createSecretBox, listOrganizations, findWebhookSource, newId } from '@workflow-service/database'
import {
  type AppliedManifest,
  type ApplyOptions,
  applyManifests,
  type ManifestChange,
  ManifestError,
  ManifestOverwriteError,
  type PersonEdit,
  recordApplied,
} from '@workflow-service/database/manifest'
import { InternalCallError, type InternalClient } from '@workflow-service/service-kit/internal-client'
import { checkManifests, formatWarnings, type ManifestWarning } from './check-manifests.ts'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { type FileError, type ManifestFile, manifestFileError, readManifestFiles } from './manifest-file.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { findOrganization } from './find.ts'
import { formatEdit, formatPlan, type ThingResult, THING_NAMES } from './format-plan.ts'
import type { Terminal } from '../terminal.ts'

interface SourceResult {
  id: string
  name: string
  outcome: 'created' | 'changed' | 'unchanged' | 'failed'
  /** Whether the endpoint has confirmed the stored source. */
  verified: boolean
  changes: readonly ManifestChange[]
  /** The dispatcher's error, when the outcome is `failed`. */
  error?: Record<string, unknown> & { message: string }
}

/** The result for one look-up. */
type LookupResult = Pick<SourceResult, 'id' | 'name' | 'outcome' | 'changes' | 'error'>

type Applied = AppliedManifest & { sources: SourceResult[]; savedLookups: LookupResult[] }

/** Sources that are saved concurrently; each may wait 10 s for its endpoint. */
const MAX_CONCURRENT_SAVES = 8

interface Options {
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly organization?: string
  readonly allowUnknown?: boolean
}

/** `wf apply FILE…` */
export async function apply(ctx: OperatorContext, names: string[], options: Options): Promise<CommandResult> {
  const files = await readManifestFiles(ctx, names)
  if (options.organization !== undefined) await redirect(ctx, files, options.organization)
  const manifests = files.map(({ manifest }) => manifest)
  const warnings = await findWarnings(ctx, files, options.allowUnknown)
  const warningsOf = (index: number) => warnings.filter(({ file }) => file === files[index]?.name)
  const canAsk = !names.includes('-')
  const { documents, text, exitStatus } = options.dryRun
    ? await plan(ctx, manifests)
    : await applyFiles(ctx, manifests, { isForced: options.yes ?? false, canAsk })
  const json = documents.map((document, index) => ({ ...document, warnings: warningsOf(index) }))
  return {
    json: json.length === 1 ? json[0] : json,
    text: (terminal) => `${text(terminal)}${warnings.length > 0 ? `\n${formatWarnings(warnings)}` : ''}`,
    exitStatus,
  }
}

/** Makes the manifest one of an organization that there is, or of a new one with this name. */
async function redirect(ctx: OperatorContext, files: readonly ManifestFile[], given: string): Promise<void> {
  const [file, ...others] = files
  if (!file || others.length > 0) throw new UsageError('With --organization, apply one file at a time.')
  const [byName] = await listOrganizations(ctx.db, { name: given, limit: 1 })
  const isNew = !byName && !UUID_PATTERN.test(given)
  const { id, name } = isNew ? { id: undefined, name: given } : await findOrganization(ctx, given)
  const { id: _id, ...organization } = file.manifest.organization
  file.manifest.organization = { ...organization, name, ...(id && { id }) }
}

/** @throws CliError with every error of all files: of shape, of rules, of what is stored, and of webhook sources. */
async function findWarnings(
  ctx: OperatorContext,
  files: readonly ManifestFile[],
  allowsUnknown: boolean | undefined,
): Promise<readonly ManifestWarning[]> {
  const { warnings, errors: ofRules } = await checkManifests(ctx.db, files, allowsUnknown)
  const ofShape = files.flatMap((file) => file.errors)
  // An entry with such an error was left out: what names it would be reported, too.
  const isLeftOut = (list: string) => ofShape.some(({ path }) => path.startsWith(`${list}[`))
  const follows = ({ path }: FileError) =>
    (path.includes('.users[') && isLeftOut('users')) || (path.includes('.files[') && isLeftOut('webhook_sources'))
  const others = [...ofRules, ...(await findConflicts(ctx, files))].filter((error) => !follows(error))
  if (ofShape.length + others.length > 0) throw manifestFileError([...ofShape, ...others])
  return warnings
}

/** Plans the manifests, and has the dispatcher check the webhook sources. Writes nothing. */
async function findConflicts(ctx: OperatorContext, files: readonly ManifestFile[]): Promise<FileError[]> {
  const toFileError = (index: number, given: string, message: string): FileError => {
    const { name: file, pathOf, lineOf } = files[index]!
    const path = pathOf(given)
    return { file, path, message, line: lineOf(path) }
  }
  const manifests = files.map(({ manifest }) => manifest)
  let plans: readonly AppliedManifest[] = []
  let errors: FileError[] = []
  try {
    plans = await applyManifests(ctx.db, manifests, { ...secretsOf(ctx), isDryRun: true })
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error
    errors = error.violations.map(({ manifestIndex, path, message }) => toFileError(manifestIndex, path, message))
  }
  if (!ctx.config.hasDispatcher) return errors
  const checks = manifests.flatMap(({ webhook_sources: sources = [] }, index) =>
    sources.map(async ({ verify: _verify, id: given, ...source }, position) => {
      const { organization, webhookSources } = plans[index] ?? {}
      const planned = webhookSources?.[position]
      if (planned?.outcome === 'unchanged') return []
      const params = { organization_id: organization?.id ?? newId(), source_id: planned?.id ?? given ?? newId() }
      const found = await checkSource(ctx.dispatcher(), params, source)
      return found.map(({ field, message }) => toFileError(index, `webhook_sources[${position}].${field}`, message))
    }),
  )
  return [...errors, ...(await Promise.all(checks)).flat()]
}

async function checkSource(
  dispatcher: InternalClient,
  params: { organization_id: string; source_id: string },
  body: WebhookSourceIn,
): Promise<readonly FieldError[]> {
  try {
    await dispatcher.call('checkWebhookSource', { params, body })
    return []
  } catch (error) {
    if (!(error instanceof InternalCallError)) throw error
    // The save reports that no dispatcher responds. That of the release before does not have the operation.
    return error.body?.details ?? []
  }
}

/** What was or would be applied: one document of JSON for each manifest, and a text for all. */
interface Outcomes {
  readonly documents: readonly object[]
  readonly text: (terminal: Terminal) => string
  readonly exitStatus?: 0 | 1
}

/** Shows the plan and writes nothing. */
async function plan(ctx: OperatorContext, manifests: readonly Manifest[]): Promise<Outcomes> {
  const plans = await applyManifests(ctx.db, manifests, { ...secretsOf(ctx), isDryRun: true })
  const documents = plans.map((planned) => ({
    dry_run: true,
    ...toJson({
      ...planned,
      // A key that is not stored must not look usable.
      apiKeys: planned.apiKeys.map(({ key: _key, ...rest }) => rest),
      sources: planned.webhookSources.map(toPlanned),
      savedLookups: planned.lookups.map(toPlanned),
    }),
  }))
  return {
    documents,
    text: (terminal) =>
      `${plans.map((planned) => formatPlan(planned, terminal)).join('\n')}Nothing was written, because of --dry-run.\n`,
  }
}

function toPlanned({
  id,
  save: { name },
  outcome,
  changes,
}: AppliedManifest['webhookSources' | 'lookups'][number]): LookupResult {
  return { id, name, outcome, changes }
}

/** Compares secrets exactly if the key is known; otherwise the plan counts each given secret as a change. */
function secretsOf({ config }: OperatorContext): Pick<ApplyOptions, 'secrets'> {
  return config.hasSecretsKey ? { secrets: createSecretBox(config.secretsKeys()) } : {}
}

async function applyFiles(
  ctx: OperatorContext,
  manifests: readonly Manifest[],
  options: { isForced: boolean; canAsk: boolean },
): Promise<Outcomes> {
  // Created before anything is written, so that a missing setting does not leave the manifest half applied.
  const hasSources = manifests.some(
    ({ webhook_sources: sources = [], lookups = [] }) => sources.length + lookups.length > 0,
  )
  const dispatcher = hasSources ? ctx.dispatcher() : undefined
  const applied: Applied[] = []
  for (const result of await write(ctx, manifests, options)) {
    const sources = dispatcher ? await saveSources(ctx, dispatcher, result) : []
    const savedLookups = dispatcher ? await saveLookups(ctx, dispatcher, result) : []
    applied.push({ ...result, sources, savedLookups })
  }
  const hasFailed = applied.some(({ sources, savedLookups }) =>
    [...sources, ...savedLookups].some(({ outcome }) => outcome === 'failed'),
  )
  for (const { save, shouldVerify } of applied.flatMap(({ webhookSources }) => webhookSources)) {
    if (shouldVerify) continue
    ctx.terminal.writeError(
      `Warning: ${save.name} was stored without a verification request, because the manifest has verify: false.\n`,
    )
  }
  return {
    documents: applied.map(toJson),
    text: (terminal) => applied.map((result) => formatPlan(result, terminal, resultsOf(result))).join('\n'),
    exitStatus: hasFailed ? 1 : 0,
  }
}

/**
 * Writes everything but the webhook sources. Asks before it overwrites what people changed, until nothing else is
 * overwritten.
 */
async function write(
  ctx: OperatorContext,
  manifests: readonly Manifest[],
  { isForced, canAsk }: { isForced: boolean; canAsk: boolean },
): Promise<AppliedManifest[]> {
  const { ask, writeError } = ctx.terminal
  const accepted = new Set<string>()
  for (;;) {
    try {
      const overwrite = isForced ? 'all' : accepted
      return await applyManifests(ctx.db, manifests, { ...secretsOf(ctx), overwrite })
    } catch (error) {
      if (!(error instanceof ManifestOverwriteError)) throw error
      if (!ask || !canAsk) throw refusal(error.refused)
      writeError(`${error.applied.map((planned) => formatPlan(planned, ctx.terminal)).join('\n')}\n`)
      const count = error.refused.length === 1 ? 'this change' : `these ${error.refused.length} changes`
      const answer = await ask(`Overwrite ${count} that people made in the application? [y/N] `)
      if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('Nothing was applied.')
      for (const { eventId } of error.refused) accepted.add(eventId)
    }
  }
}

function refusal(edits: readonly PersonEdit[]): CliError {
  const lines = edits.map((edit) => `  ${THING_NAMES[edit.kind]} ${edit.name}: ${formatEdit(edit)}`)
  return new CliError(
    `Nothing was applied. It would overwrite what people changed in the application:\n${lines.join('\n')}\nSee the plan with --dry-run. Take the changes over with wf export, or overwrite them with --yes.`,
    { overwrites: edits.map(toEditJson) },
  )
}

function toEditJson({ kind, id, name, action, by, at, count }: PersonEdit): object {
  return { kind, id, name, action, by, at, count }
}

async function saveSources(
  ctx: OperatorContext,
  dispatcher: InternalClient,
  applied: AppliedManifest,
): Promise<SourceResult[]> {
  const { webhookSources } = applied
  const results: SourceResult[] = []
  for (let start = 0; start < webhookSources.length; start += MAX_CONCURRENT_SAVES) {
    const batch = webhookSources.slice(start, start + MAX_CONCURRENT_SAVES)
    results.push(...(await Promise.all(batch.map((source) => saveSource(ctx, dispatcher, applied, source)))))
  }
  return results
}

async function saveSource(
  ctx: OperatorContext,
  dispatcher: InternalClient,
  { organization: { id: organizationId }, overwrites }: AppliedManifest,
  { id, save, shouldVerify, version, changes, kept }: AppliedManifest['webhookSources'][number],
): Promise<SourceResult> {
  const before = await findWebhookSource(ctx.db, organizationId, id)
  try {
    const { status, body: source } = await dispatcher.call('saveWebhookSource', {
      params: { organization_id: organizationId, source_id: id },
      query: { verify: shouldVerify ? 'if_changed' : 'never', version },
      body: save,
    })
    const isUnchanged = before?.updated_at === source.updated_at && before.verified_at === source.verified_at
    const outcome = status === 201 ? 'created' : isUnchanged ? 'unchanged' : 'changed'
    const result = { id, name: source.name, outcome, changes: isUnchanged ? [] : changes } as const
    if (!isUnchanged || overwrites.some((edit) => edit.id === id)) {
      await recordApplied(ctx.db.pool, organizationId, [{ kind: 'webhook_source', ...result, kept }])
    }
    return { ...result, verified: source.verified_at !== null }
  } catch (error) {
    if (!(error instanceof InternalCallError)) throw error
    const verified = (before?.verified_at ?? null) !== null
    return {
      id,
      name: save.name,
      outcome: 'failed',
      changes: [],
      verified,
      error: { ...error.body, message: error.message },
    }
  }
}

async function saveLookups(
  ctx: OperatorContext,
  dispatcher: InternalClient,
  { organization: { id: organizationId }, lookups }: AppliedManifest,
): Promise<LookupResult[]> {
  const results: LookupResult[] = []
  for (const { id, save, version, outcome, changes, kept } of lookups) {
    const result = { id, name: save.name, outcome, changes }
    const params = { organization_id: organizationId, lookup_id: id }
    try {
      if (outcome !== 'unchanged') {
        await dispatcher.call('saveLookup', { params, query: { version }, body: save })
        await recordApplied(ctx.db.pool, organizationId, [{ kind: 'lookup', ...result, kept }])
      }
      results.push(result)
    } catch (error) {
      if (!(error instanceof InternalCallError)) throw error
      results.push({ ...result, outcome: 'failed', changes: [], error: { ...error.body, message: error.message } })
    }
  }
  return results
}

function toJson({
  organization,
  users,
  apiKeys,
  sources,
  savedLookups,
  workflows,
  sessions,
  overwrites,
}: AppliedManifest & { sources: readonly object[]; savedLookups: readonly object[] }): object {
  return {
    organization_id: organization.id,
    organization,
    users,
    api_keys: apiKeys,
    webhook_sources: sources,
    lookups: savedLookups,
    workflows,
    sessions,
    overwrites: overwrites.map(toEditJson),
  }
}

/** The results of what the dispatcher saves, and the keys that are shown this once. */
function resultsOf({ apiKeys, sources, savedLookups }: Applied): Map<string, ThingResult> {
  return new Map<string, ThingResult>([
    ...apiKeys.map(({ id, key }) => [id, { note: key }] as const),
    ...[...sources, ...savedLookups].map(
      ({ id, outcome, changes, error }) => [id, { outcome, changes, note: error?.message }] as const,
    ),
  ])
}

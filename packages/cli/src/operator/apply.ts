import { type FieldError, type Manifest, UUID_PATTERN } from '@workflow-service/contract'
import { createSecretBox, listOrganizations, findWebhookSource, newId } from '@workflow-service/database'
import {
  type AppliedManifest,
  type ApplyOptions,
  applyManifests,
  ManifestError,
  ManifestOverwriteError,
  type PersonEdit,
  recordApplied,
} from '@workflow-service/database/manifest'
import { InternalCallError } from '@workflow-service/service-kit/internal-client'
import { checkManifests, formatWarnings, type ManifestWarning } from './check-manifests.ts'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { type FileError, type ManifestFile, manifestFileError, readManifestFiles } from './manifest-file.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { findOrganization } from './find.ts'
import { toNewName } from './organizations.ts'
import { formatEdit, formatPlan, type ThingResult, THING_NAMES } from './format-plan.ts'

/** What became of a thing that the dispatcher saves. */
interface SaveResult extends Pick<PlannedThing, 'id' | 'name' | 'changes'> {
  readonly outcome: 'created' | 'changed' | 'unchanged' | 'failed'
  /** Of a webhook source: whether the endpoint has confirmed the stored one. */
  readonly verified?: boolean
  /** The dispatcher's error, when the outcome is `failed`. */
  readonly error?: Record<string, unknown> & { message: string }
}

type Applied = Omit<AppliedManifest, 'lookups'> & { sources: SaveResult[]; lookups: SaveResult[] }
type PlannedThing = AppliedManifest['things'][number]

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
  const { plans, warnings } = await checkFiles(ctx, files, options.allowUnknown)
  const { dryRun: isDryRun = false, yes: isForced = false } = options
  const manifests = files.map(({ manifest }) => manifest)
  const applied = isDryRun
    ? plans.map(toApplied)
    : await applyFiles(ctx, manifests, { isForced, canAsk: !names.includes('-') })
  const json = applied.map((each, index) => ({
    ...(isDryRun && { dry_run: true }),
    ...toJson(each),
    warnings: warnings.filter(({ file }) => file === files[index]?.name),
  }))
  const saved = applied.flatMap(({ sources, lookups }) => [...sources, ...lookups])
  return {
    json: json.length === 1 ? json[0] : json,
    text: (terminal) =>
      [
        applied.map((each) => formatPlan(each, terminal, resultsOf(each))).join('\n'),
        isDryRun ? 'Nothing was written, because of --dry-run.\n' : '',
        warnings.length > 0 ? `\n${formatWarnings(warnings)}` : '',
      ].join(''),
    exitStatus: saved.some(({ outcome }) => outcome === 'failed') ? 1 : 0,
  }
}

/** Makes the manifest one of an organization that there is, or of a new one with this name. */
async function redirect(ctx: OperatorContext, files: readonly ManifestFile[], given: string): Promise<void> {
  const [file, ...others] = files
  if (!file || others.length > 0) throw new UsageError('With --organization, apply one file at a time.')
  const [byName] = await listOrganizations(ctx.db, { name: given, limit: 1 })
  const isNew = !byName && !UUID_PATTERN.test(given)
  const { id, name } = isNew ? { id: undefined, name: toNewName(given) } : await findOrganization(ctx, given)
  const { id: _id, ...organization } = file.manifest.organization
  file.manifest.organization = { ...organization, name, ...(id && { id }) }
}

/**
 * Plans the files, without writing anything.
 * @throws CliError with every error of all files: of shape, of rules, of what is stored, and of webhook sources.
 */
async function checkFiles(
  ctx: OperatorContext,
  files: readonly ManifestFile[],
  allowsUnknown: boolean | undefined,
): Promise<{ plans: readonly AppliedManifest[]; warnings: readonly ManifestWarning[] }> {
  const { warnings, errors: ofRules } = await checkManifests(ctx.db, files, allowsUnknown)
  const ofShape = files.flatMap((file) => file.errors)
  // An entry with such an error was left out: what names it would be reported, too.
  const isLeftOut = (list: string) => ofShape.some(({ path }) => path.startsWith(`${list}[`))
  const follows = ({ path }: FileError) =>
    (path.includes('.users[') && isLeftOut('users')) || (path.includes('.files[') && isLeftOut('webhook_sources'))
  const { plans, errors: conflicts } = await planFiles(ctx, files)
  const others = [...ofRules, ...conflicts].filter((error) => !follows(error))
  if (ofShape.length + others.length > 0) throw manifestFileError([...ofShape, ...others])
  return { plans, warnings }
}

/** Plans the manifests, and has the dispatcher check the webhook sources. Writes nothing. */
async function planFiles(
  ctx: OperatorContext,
  files: readonly ManifestFile[],
): Promise<{ plans: readonly AppliedManifest[]; errors: FileError[] }> {
  const toFileError = (index: number, path: string, message: string) => ({ ...files[index]!.locate(path), message })
  const manifests = files.map(({ manifest }) => manifest)
  let plans: readonly AppliedManifest[] = []
  let errors: FileError[] = []
  try {
    plans = await applyManifests(ctx.db, manifests, { ...secretsOf(ctx), isDryRun: true })
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error
    errors = error.violations.map(({ manifestIndex, path, message }) => toFileError(manifestIndex, path, message))
  }
  if (!ctx.config.hasDispatcher) return { plans, errors }
  const checks = manifests.flatMap(({ webhook_sources: sources = [] }, index) =>
    sources.map(async ({ verify: _verify, id: given, ...source }, position) => {
      const { organization, webhookSources } = plans[index] ?? {}
      const planned = webhookSources?.[position]
      if (planned?.outcome === 'unchanged') return []
      const params = { organization_id: organization?.id ?? newId(), source_id: planned?.id ?? given ?? newId() }
      const check = ctx.dispatcher().call('checkWebhookSource', { params, body: source })
      const found = await check.then(() => [], detailsOf)
      return found.map(({ field, message }) => toFileError(index, `webhook_sources[${position}].${field}`, message))
    }),
  )
  return { plans, errors: [...errors, ...(await Promise.all(checks)).flat()] }
}

/** What a check found. The save reports that no dispatcher responds; that of 1.0.0 has no check. */
function detailsOf(error: unknown): readonly FieldError[] {
  if (!(error instanceof InternalCallError)) throw error
  return error.body?.details ?? []
}

/** The result of applying a plan without writing. A key that is not stored must not look usable. */
function toApplied(plan: AppliedManifest): Applied {
  const { apiKeys, webhookSources, lookups } = plan
  return {
    ...plan,
    apiKeys: apiKeys.map(({ key: _key, ...rest }) => rest),
    sources: webhookSources.map(toResult),
    lookups: lookups.map(toResult),
  }
}

function toResult({ id, name, outcome, changes }: PlannedThing): SaveResult {
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
): Promise<Applied[]> {
  // Created before anything is written, so that a missing setting does not leave the manifest half applied.
  const hasSources = manifests.some(
    ({ webhook_sources: sources = [], lookups = [] }) => sources.length + lookups.length > 0,
  )
  if (hasSources) ctx.dispatcher()
  const written = await write(ctx, manifests, options)
  const applied: Applied[] = []
  try {
    for (const planned of written) {
      const { webhookSources } = planned
      const sources = await saveInOrder(webhookSources, MAX_CONCURRENT_SAVES, (each) => saveSource(ctx, planned, each))
      const lookups = await saveInOrder(planned.lookups, 1, (each) => saveLookup(ctx, planned, each))
      applied.push({ ...planned, sources, lookups })
    }
  } catch (error) {
    showNewKeys(ctx, manifests, written)
    throw error
  }
  const unverified = new Set(
    applied.flatMap(({ webhookSources }) => webhookSources.filter((each) => !each.shouldVerify).map(({ id }) => id)),
  )
  for (const { id, name, outcome } of applied.flatMap(({ sources }) => sources)) {
    if (outcome === 'failed' || !unverified.has(id)) continue
    ctx.terminal.writeError(
      `Warning: ${name} was stored without a verification request, because the manifest has verify: false.\n`,
    )
  }
  return applied
}

/** Shows the keys that were made, and are not in the manifests: another apply finds them stored, and shows none. */
function showNewKeys(
  { terminal }: OperatorContext,
  manifests: readonly Manifest[],
  written: readonly AppliedManifest[],
): void {
  const given = new Set(manifests.flatMap(({ api_keys: keys = [] }) => keys.map(({ key }) => key)))
  for (const { name, key } of written.flatMap(({ apiKeys }) => apiKeys)) {
    if (key !== undefined && !given.has(key)) terminal.writeError(`Warning: API key ${name} was created: ${key}\n`)
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

/** Saves all, at most `atOnce` concurrently, each after the one whose name it takes. The results have their order. */
async function saveInOrder<Planned extends { readonly id: string; readonly after: string | undefined }>(
  planned: readonly Planned[],
  atOnce: number,
  send: (each: Planned) => Promise<SaveResult>,
): Promise<SaveResult[]> {
  const results = new Map<string, SaveResult>()
  for (let left = planned; left.length > 0; left = left.filter(({ id }) => !results.has(id))) {
    const ids = new Set<string | undefined>(left.map(({ id }) => id))
    const next = left.filter(({ after }) => !ids.has(after)).slice(0, atOnce)
    for (const result of await Promise.all(next.map(send))) results.set(result.id, result)
  }
  return planned.flatMap(({ id }) => results.get(id) ?? [])
}

async function saveSource(
  ctx: OperatorContext,
  applied: AppliedManifest,
  source: AppliedManifest['webhookSources'][number],
): Promise<SaveResult> {
  const params = { organization_id: applied.organization.id, source_id: source.id }
  const before = await findWebhookSource(ctx.db, params.organization_id, params.source_id)
  const result = await save(ctx, applied, source, async () => {
    const verify = source.shouldVerify ? 'if_changed' : 'never'
    const request = { params, query: { verify, version: source.version }, body: source.save } as const
    const { status, body: saved } = await ctx.dispatcher().call('saveWebhookSource', request)
    const isUnchanged = before?.updated_at === saved.updated_at && before.verified_at === saved.verified_at
    const outcome = status === 201 ? 'created' : isUnchanged ? 'unchanged' : 'changed'
    return { name: saved.name, outcome, verified: saved.verified_at !== null }
  })
  return { verified: (before?.verified_at ?? null) !== null, ...result }
}

async function saveLookup(
  ctx: OperatorContext,
  applied: AppliedManifest,
  lookup: AppliedManifest['lookups'][number],
): Promise<SaveResult> {
  const { id, outcome, version, save: body } = lookup
  const params = { organization_id: applied.organization.id, lookup_id: id }
  return await save(ctx, applied, lookup, async () => {
    if (outcome !== 'unchanged') await ctx.dispatcher().call('saveLookup', { params, query: { version }, body })
    return { outcome }
  })
}

/** Saves a thing and records that in the audit log. An error of the dispatcher is the outcome. */
async function save(
  ctx: OperatorContext,
  { organization, overwrites }: AppliedManifest,
  { kind, id, name, kept, changes: planned }: PlannedThing,
  send: () => Promise<{ outcome: PlannedThing['outcome']; name?: string; verified?: boolean }>,
): Promise<SaveResult> {
  try {
    const saved = await send()
    const isUnchanged = saved.outcome === 'unchanged'
    const result = { id, name, changes: isUnchanged ? [] : planned, ...saved }
    if (!isUnchanged || overwrites.some((edit) => edit.id === id)) {
      await recordApplied(ctx.db.pool, organization.id, [{ kind, kept, ...result }])
    }
    return result
  } catch (error) {
    if (!(error instanceof InternalCallError)) throw error
    return { id, name, outcome: 'failed', changes: [], error: { ...error.body, message: error.message } }
  }
}

function toJson({ organization, users, apiKeys, sources, lookups, workflows, sessions, overwrites }: Applied): object {
  return {
    organization_id: organization.id,
    organization: toThingJson(organization),
    users: users.map(toThingJson).map(withoutName),
    api_keys: apiKeys.map(toThingJson),
    webhook_sources: sources,
    lookups,
    workflows: workflows.map(toThingJson),
    sessions: sessions.map(toThingJson).map(withoutName),
    overwrites: overwrites.map(toEditJson),
  }
}

function toThingJson({ kind: _kind, kept: _kept, ...json }: PlannedThing) {
  return json
}

/** Users and sessions are named by their address and id. */
function withoutName({ name: _name, ...json }: { readonly name: string }): object {
  return json
}

/** The results of what the dispatcher saves, and the keys that are shown this once. */
function resultsOf({ apiKeys, sources, lookups }: Applied): Map<string, ThingResult> {
  return new Map<string, ThingResult>([
    ...apiKeys.map(({ id, key }) => [id, { note: key }] as const),
    ...[...sources, ...lookups].map(
      ({ id, outcome, changes, error }) => [id, { outcome, changes, note: error?.message }] as const,
    ),
  ])
}

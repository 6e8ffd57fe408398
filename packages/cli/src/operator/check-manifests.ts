import { findSimilar, isRulesFile, type Manifest, type WorkflowWarningOut } from '@workflow-service/contract'
import { describeUnknownValue, type OpenField } from '@workflow-service/contract/manifest'
import {
  type Db,
  deriveId,
  listOpenValues,
  listSourceStates,
  normalizedName,
  readDefaultModel,
  readExample,
} from '@workflow-service/database'
import { checkRules, checkWorkflow } from '@workflow-service/rules/check-workflow'
import type { FileError, ManifestFile } from './manifest-file.ts'

export interface ManifestWarning extends WorkflowWarningOut {
  readonly file: string
  /** Such as `workflows[0].description`. */
  readonly path: string
  readonly line?: number
  readonly workflow: string
}

/**
 * Checks the workflows of the manifests as the built-in agent will read those that it executes. Returns its warnings,
 * and every error of every `rules.yaml`, and, unless `allowsUnknown`, every scope, trigger source slug and subagent
 * source type that neither this release knows nor the organization has.
 */
export async function checkManifests(
  db: Db,
  files: readonly ManifestFile[],
  allowsUnknown = false,
): Promise<{ warnings: ManifestWarning[]; errors: FileError[] }> {
  const errors: FileError[] = []
  const warnings: ManifestWarning[] = []
  let defaultModel: string | undefined
  for (const file of files) {
    const workflows = file.manifest.workflows ?? []
    let stored: Readonly<Record<OpenField, readonly string[]>> | undefined
    const sources = workflows.length > 0 ? await listSources(db, file.manifest, files) : []
    const names = new Map(sources.map(({ name }) => [normalizedName(name), name]))
    for (const [index, workflow] of workflows.entries()) {
      const { name, description = '', files: parts = [], triggers = [] } = workflow
      const at = (path: string) => file.locate(`workflows[${index}].${path}`)
      for (const [path, field, value] of allowsUnknown ? [] : openValuesOf(workflow)) {
        const message = describeUnknownValue(field, value)
        if (message === undefined) continue
        stored ??= await listOpenValues(db, idOf(file.manifest))
        if (!stored[field].includes(value)) errors.push({ ...at(path), message })
      }
      for (const [position, { subagent_sources: given = [] }] of triggers.entries()) {
        for (const [number, source] of given.entries()) {
          const warning = checkSubagentSource(source, names)
          const path = `triggers[${position}].subagent_sources[${number}].name`
          if (warning) warnings.push({ ...at(path), workflow: name, ...warning })
        }
      }
      const isBuiltIn = (workflow.model ?? (defaultModel ??= await readDefaultModel(db))) === 'builtin'
      const rulesIndex = parts.findIndex(isRulesFile)
      if (rulesIndex === -1) {
        const fired = triggers.find(({ is_active = true, trigger_source: from }) => is_active && from.slug === 'api')
        const texts = { description, rules: null, is_builtin: isBuiltIn, input_message: fired?.input_message }
        const check = await checkWorkflow(texts, sources)
        warnings.push(...check.warnings.map((warning) => ({ ...at('description'), workflow: name, ...warning })))
      } else {
        const place = at(`files[${rulesIndex}].content`)
        const readGiven = async ({ id, example_request_body: given }: Source) =>
          given ?? (id === undefined ? undefined : await readExample(db, idOf(file.manifest), { id }))
        const check = await checkRules(
          parts[rulesIndex]?.content ?? '',
          sources,
          isBuiltIn ? { readExample: readGiven } : {},
        )
        errors.push(...check.errors.map(({ message }) => ({ ...place, message })))
        const warned = { ...place, workflow: name, code: 'rules_invalid', excerpt: '' }
        warnings.push(...check.mismatches.map(({ message }) => ({ ...warned, message })))
      }
    }
  }
  return { warnings, errors }
}

type ManifestWorkflow = NonNullable<Manifest['workflows']>[number]
type SubagentSource = NonNullable<NonNullable<ManifestWorkflow['triggers']>[number]['subagent_sources']>[number]

/** The values of open enumerations. */
function* openValuesOf({
  scope,
  triggers = [],
}: ManifestWorkflow): Generator<[path: string, field: OpenField, value: string]> {
  if (scope !== undefined) yield ['scope', 'scope', scope]
  for (const [position, { trigger_source: source, subagent_sources: given = [] }] of triggers.entries()) {
    yield [`triggers[${position}].trigger_source.slug`, 'slug', source.slug]
    for (const [number, { type }] of given.entries()) {
      yield [`triggers[${position}].subagent_sources[${number}].type`, 'subagent_source', type]
    }
  }
}

/** Warns of one that refers by name to a webhook source that does not exist. */
function checkSubagentSource(
  { id, name, type }: SubagentSource,
  names: ReadonlyMap<string, string>,
): WorkflowWarningOut | undefined {
  if (type !== 'api' || typeof id === 'string' || names.has(normalizedName(name))) return undefined
  const similar = findSimilar(name, [...names.values()])
  const advice = similar === undefined ? '' : `; did you mean ${JSON.stringify(similar)}?`
  const message = `The subagent source ${JSON.stringify(name)} is no webhook source${advice}`
  return { code: 'unknown_subagent_source', message, excerpt: '' }
}

export function formatWarnings(warnings: readonly ManifestWarning[]): string {
  const lines = warnings.map(({ file, line, workflow, message, excerpt }) => {
    const place = line === undefined ? file : `${file}, line ${line}`
    const quoted = excerpt === '' || message.includes(JSON.stringify(excerpt)) ? '' : ` (${JSON.stringify(excerpt)})`
    return `Warning: ${place}: ${workflow}: ${message}${quoted}${message.endsWith('?') ? '' : '.'}\n`
  })
  return lines.join('')
}

/** A webhook source of a manifest, or a stored one, whose example is not read yet. */
interface Source {
  readonly id?: string
  readonly name: string
  readonly example_request_body?: Record<string, unknown>
}

/**
 * The webhook sources that the organization will have: those of its manifests, and the stored ones that they do not
 * change.
 */
async function listSources(db: Db, manifest: Manifest, files: readonly ManifestFile[]): Promise<Source[]> {
  const organizationId = idOf(manifest)
  const named = files
    .filter((file) => idOf(file.manifest) === organizationId)
    .flatMap((file) => file.manifest.webhook_sources ?? [])
  const changed = new Set(named.map(({ id }) => id?.toLowerCase()))
  const kept = (await listSourceStates(db, organizationId)).filter(({ id }) => !changed.has(id))
  // Several files may name one source, and in another case than the stored one.
  return [...new Map([...kept, ...named].map((source: Source) => [normalizedName(source.name), source])).values()]
}

function idOf({ organization: { id, name } }: Manifest): string {
  return id?.toLowerCase() ?? deriveId('organization', name)
}

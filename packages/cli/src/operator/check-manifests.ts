import { findSimilar, isRulesFile, type Manifest, type WorkflowWarningOut } from '@workflow-service/contract'
import { describeUnknownValue, type OpenField } from '@workflow-service/contract/manifest'
import { type Db, deriveId, listOpenValues, listSourceStates, normalizedName } from '@workflow-service/database'
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
 * Checks the workflows of the manifests as the built-in agent will read them. Returns its warnings, and every error of
 * every `rules.yaml`, and, unless `allowsUnknown`, every scope, trigger source slug and subagent source type that
 * neither this release knows nor the organization has.
 */
export async function checkManifests(
  db: Db,
  files: readonly ManifestFile[],
  allowsUnknown = false,
): Promise<{ warnings: ManifestWarning[]; errors: FileError[] }> {
  const errors: FileError[] = []
  const warnings: ManifestWarning[] = []
  for (const file of files) {
    const workflows = file.manifest.workflows ?? []
    let stored: Readonly<Record<OpenField, readonly string[]>> | undefined
    const sources = workflows.length > 0 ? await listSources(db, file.manifest, files) : []
    for (const [index, manifestWorkflow] of workflows.entries()) {
      const { name: workflow, description = '', files: parts = [], triggers = [] } = manifestWorkflow
      const at = (given: string) => {
        const path = file.pathOf(given)
        return { file: file.name, path, line: file.lineOf(path) }
      }
      for (const { path, field, value, message } of allowsUnknown ? [] : findUnknownValues(manifestWorkflow)) {
        stored ??= await listOpenValues(db, idOf(file.manifest))
        if (!stored[field].includes(value)) errors.push({ ...at(`workflows[${index}].${path}`), message })
      }
      for (const [position, { subagent_sources: given = [] }] of triggers.entries()) {
        for (const [number, unknown] of findUnknownSources(given, sources)) {
          const path = `workflows[${index}].triggers[${position}].subagent_sources[${number}].name`
          warnings.push({ ...at(path), workflow, ...unknown })
        }
      }
      const rulesIndex = parts.findIndex(isRulesFile)
      if (rulesIndex === -1) {
        const check = await checkWorkflow({ description, rules: null }, sources)
        warnings.push(
          ...check.warnings.map((warning) => ({ ...at(`workflows[${index}].description`), workflow, ...warning })),
        )
      } else {
        const check = await checkRules(parts[rulesIndex]?.content ?? '', sources)
        const path = `workflows[${index}].files[${rulesIndex}].content`
        errors.push(...check.errors.map(({ message }) => ({ ...at(path), message })))
      }
    }
  }
  return { warnings, errors }
}

type ManifestWorkflow = NonNullable<Manifest['workflows']>[number]
type SubagentSource = NonNullable<NonNullable<ManifestWorkflow['triggers']>[number]['subagent_sources']>[number]

interface UnknownValue {
  readonly path: string
  readonly field: OpenField
  readonly value: string
  readonly message: string
}

/** The values of open enumerations that this release does not know. */
function findUnknownValues({ scope, triggers = [] }: ManifestWorkflow): UnknownValue[] {
  const values: [path: string, field: OpenField, value: string | undefined][] = [['scope', 'scope', scope]]
  for (const [position, { trigger_source: source, subagent_sources: given = [] }] of triggers.entries()) {
    const path = `triggers[${position}]`
    values.push([`${path}.trigger_source.slug`, 'slug', source.slug])
    for (const [number, { type }] of given.entries()) {
      values.push([`${path}.subagent_sources[${number}].type`, 'subagent_source', type])
    }
  }
  return values.flatMap(([path, field, value]) => {
    const message = value === undefined ? undefined : describeUnknownValue(field, value)
    return value === undefined || message === undefined ? [] : { path, field, value, message }
  })
}

/** The subagent sources that refer by name to a webhook source that does not exist. */
function findUnknownSources(
  given: readonly SubagentSource[],
  sources: readonly { readonly name: string }[],
): [index: number, WorkflowWarningOut][] {
  const names = sources.map(({ name }) => name)
  const known = new Set(names.map(normalizedName))
  return [...given.entries()].flatMap(([index, { id, name, type }]): [number, WorkflowWarningOut][] => {
    if (type !== 'api' || typeof id === 'string' || known.has(normalizedName(name))) return []
    const similar = findSimilar(name, names)
    const advice = similar === undefined ? '' : `; did you mean ${JSON.stringify(similar)}?`
    const message = `The subagent source ${JSON.stringify(name)} is no webhook source${advice}`
    return [[index, { code: 'unknown_subagent_source', message, excerpt: '' }]]
  })
}

export function formatWarnings(warnings: readonly ManifestWarning[]): string {
  const lines = warnings.map(({ file, line, workflow, message, excerpt }) => {
    const place = line === undefined ? file : `${file}, line ${line}`
    const quoted = excerpt === '' || message.includes(JSON.stringify(excerpt)) ? '' : ` (${JSON.stringify(excerpt)})`
    return `Warning: ${place}: ${workflow}: ${message}${quoted}${message.endsWith('?') ? '' : '.'}\n`
  })
  return lines.join('')
}

/**
 * The webhook sources that the organization will have: those of its manifests, and the stored ones that they do not
 * change.
 */
async function listSources(db: Db, manifest: Manifest, files: readonly ManifestFile[]): Promise<{ name: string }[]> {
  const organizationId = idOf(manifest)
  const named = files
    .filter((file) => idOf(file.manifest) === organizationId)
    .flatMap((file) => file.manifest.webhook_sources ?? [])
  const changed = new Set(named.map(({ id }) => id?.toLowerCase()))
  const stored = await listSourceStates(db, organizationId)
  const kept = stored.filter(({ id, name }) => !changed.has(id) && !named.some((source) => source.name === name))
  return [...named, ...kept].map(({ name }) => ({ name }))
}

function idOf({ organization: { id, name } }: Manifest): string {
  return id?.toLowerCase() ?? deriveId('organization', name)
}

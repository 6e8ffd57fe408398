import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  checkDescription,
  findNamedSources,
  findUnknownFields,
  type WorkflowWarningOut,
} from '@workflow-service/contract'
import type { Rules } from './parse-rules.ts'
import type { RuleError } from './rule-place.ts'

/** What the agent would do with a workflow. */
export interface WorkflowCheck<Source> {
  /** The webhook sources that may get a payload. */
  readonly sources: readonly Source[]
  /** Names in quotation marks in the description that no source has. */
  readonly unknownNames: readonly string[]
  /** The errors of its rules, or what is wrong with its description if it has no rules. */
  readonly warnings: readonly WorkflowWarningOut[]
}

interface CheckOptions<Source> {
  /** That of `parseRules`. */
  readonly waitForTurn?: () => Promise<void>
  /** Reads the example of a source that rules name. */
  readonly readExample?: (source: Source) => Promise<Record<string, unknown> | undefined>
}

/**
 * Checks a workflow as the built-in agent reads it: by its rules if it has a `rules.yaml`, otherwise by its
 * description. One that a model executes sends to what either names, and has no warnings of what only the built-in
 * agent refuses. Without rules, CEL is not loaded. Callers check up to 100 descriptions of up to 50 ms each (2 cores,
 * November 2026), so the event loop is free between them.
 */
export async function checkWorkflow<Source extends { readonly name: string }>(
  workflow: {
    readonly description: string
    readonly rules: string | null
    readonly is_builtin?: boolean
    /** That of the trigger that the API fires. */
    readonly input_message?: string
  },
  sources: readonly Source[],
  options?: CheckOptions<Source>,
): Promise<WorkflowCheck<Source>> {
  const { description, rules, is_builtin: isBuiltIn = true, input_message: inputMessage } = workflow
  await nextTurn()
  if (rules === null) {
    const named = findNamedSources(description, sources)
    await nextTurn()
    const found = checkDescription(description, sources, inputMessage)
    const warnings = isBuiltIn ? found : found.filter(({ code }) => code === 'unknown_source_named')
    const unknownNames = warnings.flatMap(({ code, excerpt }) => (code === 'unknown_source_named' ? [excerpt] : []))
    return { sources: named, unknownNames, warnings }
  }
  if (!isBuiltIn) {
    // Each gives it tools (docs/agents.md, "Least privilege").
    const named = new Set(findNamedSources(description, sources))
    await nextTurn()
    for (const source of findNamedSources(rules, sources)) named.add(source)
    return { sources: [...named], unknownNames: [], warnings: [] }
  }
  const { checked, errors, mismatches } = await checkRules(rules, sources, options)
  const warnings = [...errors, ...mismatches].map(({ message }) => ({ code: 'rules_invalid', message, excerpt: '' }))
  return { sources: checked, unknownNames: [], warnings }
}

const MAX_MISMATCHES = 20

type CheckError = Pick<RuleError, 'line' | 'message'>

/**
 * Every error of the rules, and the sources that they name. `mismatches`: fields of payloads that the examples of their
 * sources do not have, with which each run fails; the rules can be saved, since examples change too.
 */
export async function checkRules<Source extends { readonly name: string }>(
  rules: string,
  sources: readonly Source[],
  { waitForTurn, readExample }: CheckOptions<Source> = {},
): Promise<{ checked: Source[]; errors: readonly CheckError[]; mismatches: readonly CheckError[] }> {
  const { findSources, parseRules } = await import('./index.ts')
  const parsed = await parseRules(rules, waitForTurn)
  if ('errors' in parsed) return { checked: [], errors: parsed.errors, mismatches: [] }
  const { found, errors } = findSources(parsed.rules, sources)
  const checked = [...new Set(found.filter((source) => source !== undefined))]
  if (!readExample) return { checked, errors, mismatches: [] }
  const mismatches: CheckError[] = []
  for (const source of checked) {
    const example = await readExample(source)
    await nextTurn()
    const ofSource = parsed.rules.deliveries.filter((_, index) => found[index] === source)
    if (example) mismatches.push(...findForeignFields(example, ofSource))
  }
  return { checked, errors, mismatches: mismatches.slice(0, MAX_MISMATCHES) }
}

function findForeignFields(example: Record<string, unknown>, deliveries: Rules['deliveries']): RuleError[] {
  return deliveries.flatMap(({ payload, errorAt }) =>
    // Not what else differs: the values are expressions, which have no type yet, and other fields are filled by name.
    findUnknownFields(example, payload).map(({ field, message }) => errorAt(['payload', ...field.split('.')], message)),
  )
}

import { parseWithSource, truncateText } from '@workflow-service/contract'
import { type ContextObject, type ContextValue, NumberText } from '@workflow-service/rules/convert-value'
import { findRepeatedName } from '../context-values.ts'
import { foldName } from './fold-name.ts'
import { PlanError } from './plan-error.ts'

/** What a context says: JSON as a whole, or lines `name: value` by folded name, each with its different values. */
export type ReadContext =
  | { readonly json: ContextObject | ContextValue[] }
  | { readonly lines: ReadonlyMap<string, { readonly name: string; readonly values: readonly string[] }> }

/**
 * Reads a context (contract README, "The built-in agent"): JSON as a whole, or a text in which each line that is not
 * empty is `name: value`.
 * @throws PlanError `needs_a_model` for any other text, with the first line that is not understood.
 */
export function readContext(context: string): ReadContext {
  const text = context.trim()
  return isLikeJson(text) ? { json: parseJson(text) } : { lines: readLines(text) }
}

/** Whether the text begins like a JSON object or list. */
export function isLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text)
}

/**
 * A name begins with a letter, a digit, `_`, `@`, `$`, `¿` or `№`, and has no sign of Markdown, JSON or HTML: those
 * have values of their own. It may have a unit in brackets (`Weight [kg]`, not a link `[text](address)`) and the mark
 * of a required field (`Name*`).
 */
const LINE =
  /^(?<name>[\p{L}\p{N}_@$¿№](?:[^:：*`<>|"{}[\]]|\[[^:：*`<>|"{}[\]]{1,40}\](?!\()){0,199}?)\s{0,9}\*?\s{0,9}[:：](?<value>.*)$/su

function readLines(text: string): Map<string, { name: string; values: string[] }> {
  const lines = new Map<string, { name: string; values: Set<string> }>()
  for (const [index, line] of text.split(/\r\n?|[\n\v\f\u0085\u2028\u2029]/).entries()) {
    const trimmed = line.trim()
    if (trimmed === '') continue
    const { name, value } = LINE.exec(trimmed)?.groups ?? {}
    if (name === undefined) throw needsModel(index + 1, trimmed, 'is no "name: value"')
    const folded = foldName(name)
    const { values = new Set<string>() } = lines.get(folded) ?? {}
    lines.set(folded, { name, values: values.add(value?.trim() ?? '') })
  }
  return new Map(Array.from(lines, ([folded, { name, values }]) => [folded, { name, values: [...values] }]))
}

/**
 * @throws PlanError `needs_a_model` if the text is no JSON object or list; `payload_incomplete` if it has a name twice.
 */
function parseJson(text: string): ContextObject | ContextValue[] {
  let value: ContextObject | ContextValue[]
  try {
    value = parseWithSource(text, keepNumberText) as ContextObject | ContextValue[]
  } catch (error) {
    throw describeBrokenJson(text, error as Error)
  }
  const name = findRepeatedName(text, value)
  if (name === undefined) return value
  const what = `the name ${JSON.stringify(truncateText(name, 100))} twice`
  throw new PlanError('payload_incomplete', `Nothing was sent: an object of the context has ${what}`)
}

/** Most messages of V8 end with the place: "Expected double-quoted property name in JSON at … (line 3 column 1)". */
function describeBrokenJson(text: string, { message }: Error): PlanError {
  const { line = '1', column } = /\(line (?<line>\d+) column (?<column>\d+)\)$/.exec(message)?.groups ?? {}
  const broken = text.split('\n', Number(line)).at(-1) ?? ''
  if (column === undefined) return needsModel(1, broken, 'begins like JSON, but the context is no JSON as a whole')
  const excerpt = broken.slice(Math.max(0, Number(column) - 101))
  return needsModel(
    Number(line),
    excerpt,
    `is no JSON from character ${column} on, although the context begins like it`,
  )
}

/** Parses a JSON object or list; undefined for any other text, and for one with a name twice. */
export function parseStructure(text: string): ContextValue | undefined {
  try {
    return isLikeJson(text) ? parseJson(text) : undefined
  } catch {
    return undefined
  }
}

function keepNumberText(_name: string, value: unknown, { source = '' }: { readonly source?: string }): unknown {
  return typeof value === 'number' ? new NumberText(source) : value
}

function needsModel(number: number, line: string, problem: string): PlanError {
  const excerpt = JSON.stringify(truncateText(line, 200))
  return new PlanError(
    'needs_a_model',
    `Nothing was sent: line ${number} of the context ${problem}: ${excerpt}. The built-in agent reads JSON, or lines "name: value"; for other texts, set a model, or write a rules.yaml that reads the text`,
  )
}

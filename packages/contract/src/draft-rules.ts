import { findNamedSources } from './named-sources.ts'
import type { NoteStep, RefusalDetails } from './journal.ts'
import { RULES_MAX_BYTES, RULES_MAX_DELIVERIES } from './limits.ts'
import { allowsAnyField, inferShape, isJsonObject, type PayloadShape } from './schema/payload-shape.ts'

/** The errors of runs for which rules can be drafted. */
export const DRAFT_CODES = ['needs_a_model', 'payload_incomplete', 'rules_needed', 'no_destination'] as const

/** In place of the path of a field: no field can take a value of the context, which is a list. */
export const WHOLE_CONTEXT = 'the context'

/** Why the built-in agent refused a run, or would refuse one. */
export interface Refusal {
  readonly code: (typeof DRAFT_CODES)[number]
  /** The first comment of the draft. */
  readonly comment: string
  /** With `rules_needed`: the sentence of the description that was not understood. */
  readonly sentence?: string | undefined
  readonly details?: RefusalDetails | undefined
}

interface Named {
  readonly name: string
}

function draftCodeOf(error: string | null): Refusal['code'] | undefined {
  const code = error?.split(':', 1)[0]
  return DRAFT_CODES.find((known) => known === code)
}

/** Whether rules can be drafted for a run with this error, `code: message`. */
export function canDraftRules(error: string | null): boolean {
  return draftCodeOf(error) !== undefined
}

/** The message of a run that failed with `rules_needed`: `readRefusal` reads the sentence from it. */
export function describeRulesNeeded(message: string, sentence: string): string {
  return `${message}. The sentence is: ${sentence}`
}

/** Reads the refusal from a run's error and journal. Returns undefined if no rules can be drafted for the run. */
export function readRefusal({
  error,
  steps,
}: {
  readonly error: string | null
  readonly steps: readonly { readonly kind: string; readonly data: unknown }[]
}): Refusal | undefined {
  const code = draftCodeOf(error)
  if (error === null || code === undefined) return undefined
  const sentence = /The sentence is: (?<sentence>.*)$/su.exec(error)?.groups?.['sentence']
  const note = steps.findLast(({ kind, data }) => kind === 'note' && (data as NoteStep).code === code)
  return { code, comment: error, sentence, details: (note?.data as NoteStep | undefined)?.details }
}

/**
 * The sources of the draft: those of the refusal, or those that the description names, or else the first ones of all.
 */
export function selectDraftSources<Source extends Named>(
  { details }: Refusal,
  description: string,
  sources: readonly Source[],
): Source[] {
  const refused = sources.filter(({ name }) => details?.sources.includes(name))
  const named = refused.length > 0 ? refused : findNamedSources(description, sources)
  return (named.length > 0 ? named : sources).slice(0, named.length > 0 ? RULES_MAX_DELIVERIES : 10)
}

/**
 * Drafts the `rules.yaml` that a refusal calls for (docs/rules.md): a delivery for each source, with the names that may
 * be meant for the missing fields, and `todo("…")` for what only a person knows. The text is valid; a run with an open
 * `todo` fails with `rule_failed` and sends nothing.
 */
export function draftRules(
  refusal: Refusal,
  sources: readonly (Named & { readonly example_request_body: Record<string, unknown> })[],
): string {
  const { code, details } = refusal
  const comments = [
    refusal.comment,
    'What is in todo(…) is open. A run with an open todo sends nothing.',
    'This is the file rules.yaml of the workflow, in no folder: save it on the page of its files, or under files in a manifest.',
  ]
  if (sources.length === 0) return `${toComments(comments)}# There is no webhook source yet: add one first.\n`
  const when = draftCondition(refusal)
  const drafts = sources.map(({ name, example_request_body: example }) => ({
    begin: [
      `  - to: ${JSON.stringify(name)}\n`,
      ...(isList(refusal) ? ['    for_each: items\n'] : []),
      ...(when === undefined ? [] : [`    when: ${quote(when)}\n`]),
    ].join(''),
    fields: Array.from(draftPayload(code, name, example, details), (field) => toYaml(new Map([field]), 6)),
  }))
  let free = RULES_MAX_BYTES - byteLengthOf(toComments([...comments, LEFT_OUT])) - 'deliveries:\n'.length
  let isCut = false
  const fits = (text: string): boolean => {
    const bytes = byteLengthOf(text)
    const isFitting = bytes <= free
    if (isFitting) free -= bytes
    else isCut = true
    return isFitting
  }
  // Sources before fields: a run without a field that it needs sends nothing, one without a source sends to the others.
  const deliveries = drafts
    .filter(({ begin }) => fits(`${begin}    payload:\n`))
    .map(({ begin, fields }) => {
      const given = fields.filter(fits)
      return [begin, ...(given.length > 0 ? ['    payload:\n', ...given] : [])].join('')
    })
  return `${toComments(isCut ? [...comments, LEFT_OUT] : comments)}deliveries:\n${deliveries.join('')}`
}

/** The comment of a draft that would be larger than a file of rules may be. */
const LEFT_OUT = `Fields or webhook sources are left out here: the file would be larger than ${RULES_MAX_BYTES / 1024} KiB.`

const byteLengthOf = (text: string): number => new TextEncoder().encode(text).length

/** Whether the context is a list in JSON. */
const isList = ({ details }: Pick<Refusal, 'details'>): boolean =>
  details?.unusable.some(({ field }) => field === WHOLE_CONTEXT) ?? false

function draftCondition({ code, comment, sentence = comment, details }: Refusal): string | undefined {
  if (isList({ details })) return todo('does each item of the list get a payload? Write true, or a condition')
  if (code === 'no_destination') return todo('does it get a payload? Write true, a condition, or delete this delivery')
  if (code === 'rules_needed') return todo(`when does it get a payload? Write true, or a condition for: ${sentence}`)
  if (code !== 'payload_incomplete' || details?.missing.length !== 0 || details.unusable.length > 0) return undefined
  return todo(`may it be sent without the values of ${details.unused.slice(0, 5).join(', ')}? Then write true`)
}

/** Expressions by field. */
type Draft = Map<string, string | Draft>

function draftPayload(
  code: string,
  source: string,
  example: Record<string, unknown>,
  details: RefusalDetails | undefined,
): Draft {
  const draft: Draft = code === 'needs_a_model' ? draftTexts(inferShape(example)) : new Map()
  for (const { field, closest } of details?.missing.filter((entry) => entry.source === source) ?? []) {
    if (isList({ details })) {
      // Other fields are filled from the item, by name.
      const name = closest?.startsWith('[].') ? closest.slice('[].'.length) : undefined
      if (name !== undefined) addField(draft, example, field, (shape) => readName(name, shape, { variable: 'item' }))
      continue
    }
    addField(draft, example, field, (shape) => {
      const isLine = details?.in_lines ?? false
      if (closest !== null) return readName(closest, shape, { isLine })
      const [unused] = details?.unused ?? []
      const expression = unused === undefined ? undefined : readName(unused, shape, { isLine })
      return expression === undefined ? undefined : todo(`${describeShape(shape)} for ${field}, such as ${expression}`)
    })
  }
  for (const { field, reason } of details?.unusable.filter((entry) => entry.source === source) ?? []) {
    addField(draft, example, field, () => todo(`the value cannot be used: ${reason}`))
  }
  return draft
}

/** What is to be read from a text, for each field of the shape's object. */
function draftTexts({ object }: PayloadShape, path = ''): Draft {
  const draft: Draft = new Map()
  for (const [name, field] of object?.fields ?? []) {
    const own = `${path}${name}`
    const expression = captureOf(own, field)
    if (field.object && !allowsAnyField(field.object)) draft.set(name, draftTexts(field, `${own}.`))
    else if (expression === undefined) draft.set(name, todo(`${describeShape(field)} for ${own}`))
    else draft.set(name, todo(`read it from the text, such as ${expression}`))
  }
  return draft
}

/** Adds the expression at the field's path. Names can have dots; an item of a list is given with the whole list. */
function addField(
  draft: Draft,
  example: Record<string, unknown>,
  path: string,
  toExpression: (shape: PayloadShape) => string | undefined,
): void {
  const name = Object.keys(example).find((own) => own === path || path.startsWith(`${own}.`))
  if (name === undefined) return
  const value = example[name]
  if (name !== path && isJsonObject(value)) {
    const inner = draft.get(name) ?? new Map<string, string | Draft>()
    if (typeof inner === 'string') return
    addField(inner, value, path.slice(name.length + 1), toExpression)
    // Nothing, which YAML reads as null, if the path of the refusal was cut off.
    if (inner.size > 0) draft.set(name, inner)
    return
  }
  if (draft.has(name)) return
  const shape = inferShape({ value }).object?.fields.get('value')
  const expression = name === path && shape ? toExpression(shape) : undefined
  draft.set(name, expression ?? todo(`${describeShape(shape)} for ${path}`))
}

/**
 * An expression that takes what follows the field's name at the beginning of a line, so that `total` does not take what
 * follows `Subtotal`, with the conversion to its type: that refuses what it does not read, while a pattern of digits
 * would end `1,250.00` at its comma. Undefined if no conversion of a text gives the type.
 */
function captureOf(name: string, { scalars, object, list }: PayloadShape): string | undefined {
  const pattern = `(?im)^[-> ]*${name.replaceAll(/[^\p{L}\p{N} ]/gu, '.')}:(.+)`
  const captured = `capture(context, ${JSON.stringify(pattern)})`
  if (list) return list.scalars.has('string') ? `list(${captured})` : undefined
  if (object) return undefined
  if (scalars.has('number') || scalars.has('integer')) return `number(${captured})`
  return scalars.has('boolean') ? `yes(${captured})` : `trim(${captured})`
}

/**
 * The conversion of the named value of a variable to the type of the example; undefined if the name is in a list, or
 * the example no plain value. `isLine`: it is the name of a line, which is no path.
 */
function readName(
  name: string,
  { scalars, object, list }: PayloadShape,
  { variable = 'fields', isLine = false } = {},
): string | undefined {
  if (name.includes('[]') || object) return undefined
  const names = isLine ? [name] : name.split(/\.(?=\S)/u)
  const field = `${variable}${names.map(accessName).join('')}`
  if (list) return `list(${field})`
  if (scalars.has('number') || scalars.has('integer')) return `number(${field})`
  return scalars.has('boolean') ? `yes(${field})` : scalars.has('string') ? `text(${field})` : field
}

function accessName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/iu.test(name) && !RESERVED.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
}

/** Words of CEL that are no names of fields after a dot. */
const RESERVED =
  /^(?:as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void|while)$/

function describeShape(shape: PayloadShape | undefined): string {
  if (shape?.list) return 'a list'
  if (shape?.object) return 'an object'
  const [type] = [...(shape?.scalars ?? [])].filter((scalar) => scalar !== 'null')
  if (type === 'string') return 'a text'
  if (type === 'boolean') return 'true or false'
  return type === undefined ? 'a value' : 'a number'
}

function todo(what: string): string {
  return `todo(${JSON.stringify(toLine(what))})`
}

function toComments(lines: readonly string[]): string {
  return lines.map((line) => `# ${toLine(line)}\n`).join('')
}

/** One line that YAML and CEL can hold, at most 500 characters. */
function toLine(text: string): string {
  return text
    .slice(0, 500)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\uFEFF\uFFFE\uFFFF]+/gu, ' ')
}

function toYaml(draft: Draft, indent: number): string {
  return Array.from(draft, ([name, value]) => {
    const key = `${' '.repeat(indent)}${/^[a-z_]\w*$/iu.test(name) ? name : JSON.stringify(name)}:`
    return typeof value === 'string' ? `${key} ${quote(value)}\n` : `${key}\n${toYaml(value, indent + 2)}`
  }).join('')
}

/** A text of YAML in single quotes, unless it needs none. */
function quote(expression: string): string {
  return /^[\w.()]+$/u.test(expression) ? expression : `'${expression.replaceAll("'", "''")}'`
}

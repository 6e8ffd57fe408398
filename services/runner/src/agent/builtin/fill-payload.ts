import { countJsonBytes, type JsonSchema, PAYLOAD_MAX_BYTES } from '@workflow-service/contract'
import {
  type DecimalSeparator,
  decimalSeparatorOf,
  findCurrency,
  hasCurrency,
  toCurrencyCode,
} from './convert-number.ts'
import {
  type Conversion,
  describeValue,
  isAbsent,
  isUnclearList,
  toBoolean,
  toJson,
  toNumber,
  toTextLike,
} from './convert-value.ts'
import { type ExampleField, type ExampleLevel, type ExampleObject, itemLevelSchema } from './example-level.ts'
import { indexExample } from './example-index.ts'
import { readLineItem } from './line-item.ts'
import { hasType, listTypes } from './example-schema.ts'
import { type FillReport, FillState } from './fill-state.ts'
import { type FieldMatches, matchFields } from './match-fields.ts'
import { unitOf } from './name-unit.ts'
import { toWords } from './name-words.ts'
import { normalizeName } from './normalize-name.ts'
import {
  type ContextObject,
  type ContextValue,
  isContextObject,
  type KnownNames,
  type ReadContext,
  RepeatedValue,
  toObject,
} from './context-value.ts'
import { readContext } from './parse-context.ts'

/** A payload in the shape of the example, and where the value of each field came from. */
export interface FilledPayload {
  readonly payload: Record<string, unknown>
  /** The size of its JSON in UTF-8. */
  readonly bytes: number
  readonly report: FillReport
}

/**
 * Builds a payload in the shape of the example from the context (services/runner/README.md, "What the built-in agent
 * understands"). Each field gets the value that the context names, converted to the example's type; otherwise, if it is a
 * text field whose name ends with one of TEXT_WORDS, the whole context; otherwise the empty value of its type. It never gets
 * a value of the example. A payload with unconverted values in its report must not be sent. The same input always gives the
 * same payload.
 * @throws PayloadTooLargeError as soon as the payload has more than `maxBytes` or PAYLOAD_MAX_VALUES values.
 */
export function fillPayload(
  example: Record<string, unknown>,
  context: string,
  maxBytes = PAYLOAD_MAX_BYTES,
): FilledPayload {
  const index = indexExample(example)
  const fill = new FillState(maxBytes, index)
  const level = index.level(index.schema)
  const wholeText = context === '' ? null : { text: context, bytes: countJsonBytes(context) }
  const { values, lists, problem } = readContext(context, knownNames(level, fill))
  const given = placeLists(level, values, lists, fill)
  Object.assign(fill, findNotation([values, ...lists.flat()]))
  const payload = fillLevel(index.schema, given.values, { path: [], wholeText, fill }, given.matches)
  if (fill.report.named.total > 0) {
    if (problem !== undefined) fill.report.unconverted.add([], problem)
    for (const each of given.problems) fill.report.unconverted.add([], each)
  }
  return { payload, bytes: fill.bytes, report: fill.report }
}

/** The names that the reader of the context looks for. */
function knownNames(level: ExampleLevel, fill: FillState): KnownNames {
  const itemLevels = level.lists.map((list) => fill.example.level(itemLevelSchema(list.schema) ?? {}))
  const lists = new Set(level.lists)
  const isPlainField = (words: string): boolean =>
    [...(level.byWords.get(words) ?? []), ...(level.byLastWords.get(words) ?? [])].some((field) => !lists.has(field))
  return {
    isField: (words) => hasWords(level, words) || itemLevels.some((each) => hasWords(each, words)),
    isSection: (words) => level.sections.has(words),
    isList: (words) => level.byWords.get(words)?.some(isListField) === true,
    isItemField: (words) => !isPlainField(words) && itemLevels.some((each) => hasWords(each, words)),
    itemNameField: (words) => {
      const index = level.lists.findIndex((list) => list.lastWords === words)
      const names = ['name', 'title', 'product', 'description']
      return isPlainField(words) ? undefined : names.find((name) => itemLevels[index]?.byWords.has(name))
    },
  }
}

function isListField({ schema }: ExampleField): boolean {
  return listTypes(schema).some((type) => type['type'] === 'array')
}

function hasWords({ byWords, byLastWords, byFewerWords }: ExampleLevel, words: string): boolean {
  return byWords.has(words) || byLastWords.has(words) || byFewerWords.has(words)
}

interface PlacedLists {
  readonly values: ContextObject
  readonly matches: FieldMatches
  readonly problems: readonly string[]
}

/**
 * Gives the lists of the context without a name to the lists of the example: a list of objects at least half of whose names
 * match the fields of the items. Where the example has no such list, the rows are values like others, and have to be equal.
 */
function placeLists(
  level: ExampleLevel,
  values: ContextObject,
  lists: ReadContext['lists'],
  fill: FillState,
): PlacedLists {
  const problems: string[] = []
  const entries = Object.entries(values)
  for (const rows of lists) {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
    const fitting = level.lists.filter((list) => fitsItems(names, list, fill))
    const others = names.filter((name) => !fitting.some((list) => isItemName(name, list, fill)))
    for (const name of others) {
      // A list of one object is that object: its values are there already.
      const added = rows.flatMap((row) =>
        Object.hasOwn(row, name) && row[name] !== values[name] ? [row[name] ?? ''] : [],
      )
      const words = toWords(name)
      const isKnown = hasWords(level, words) || level.sections.has(words)
      if (isKnown && added.length > 1 && added.some((value) => Array.isArray(value) || isContextObject(value))) {
        problems.push(
          `the context has ${rows.length} objects with ${JSON.stringify(name.slice(0, 50))}, where the example has one`,
        )
      } else for (const value of added) entries.push([name, value])
    }
  }
  const all = toObject(entries)
  const matches = matchFields(level, all, fill.example.isIdentifier)
  const free = [...lists, ...matches.unusedLists]
  const wanted = level.lists.map((list) => ({
    list,
    fits: free.filter((rows) => fitsItems([...new Set(rows.flatMap((row) => Object.keys(row)))], list, fill)),
  }))
  for (const { list, fits } of wanted) {
    const [rows, ...others] = fits
    if (!rows || matches.values.has(list)) continue
    const isShared = wanted.some(
      (other) => other.list !== list && other.fits.includes(rows) && !matches.values.has(other.list),
    )
    if (others.length > 0 || isShared)
      problems.push(`it is not clear which list of the context is ${list.path.join('.')}`)
    else matches.values.set(list, [...rows])
  }
  return { values: all, matches, problems }
}

function fitsItems(names: readonly string[], list: ExampleField, fill: FillState): boolean {
  const matched = names.filter((name) => isItemName(name, list, fill)).length
  const items = fill.example.level(itemLevelSchema(list.schema) ?? {})
  return matched > 0 && matched * 2 >= names.length && matched * 2 >= items.object.required.length
}

function isItemName(name: string, list: ExampleField, fill: FillState): boolean {
  const items = fill.example.level(itemLevelSchema(list.schema) ?? {})
  return items.byKey.has(normalizeName(name)) || hasWords(items, toWords(name))
}

interface Notation {
  /** The separator before decimals that the numbers show; undefined if there is none, or both. */
  readonly decimal: DecimalSeparator | undefined
  /** The code of the only currency of the amounts; undefined if there is none, or several. */
  readonly currency: string | undefined
  /** Whether any amount has a currency. */
  readonly hasCurrency: boolean
}

/** How the context writes numbers. */
function findNotation(values: readonly ContextValue[]): Notation {
  const separators = new Set<DecimalSeparator>()
  const currencies = new Set<string | undefined>()
  const visit = (value: ContextValue, depth: number): void => {
    if (typeof value === 'string') {
      const separator = decimalSeparatorOf(value)
      if (separator) separators.add(separator)
      if (value.length <= 100 && /\p{N}/u.test(value) && hasCurrency(value)) currencies.add(findCurrency(value))
    } else if (depth < 4 && value instanceof RepeatedValue) for (const each of value.values) visit(each, depth + 1)
    else if (depth < 4 && (Array.isArray(value) || isContextObject(value))) {
      for (const each of Object.values(value)) visit(each, depth + 1)
    }
  }
  for (const value of values) visit(value, 0)
  const [decimal] = separators
  const [currency] = currencies
  return {
    decimal: separators.size === 1 ? decimal : undefined,
    currency: currencies.size === 1 ? currency : undefined,
    hasCurrency: currencies.size > 0,
  }
}

/** The position of an object or value in the payload. */
interface Position {
  readonly path: readonly string[]
  readonly fill: FillState
  /** The text for text fields; null inside lists, where every item would repeat it. */
  readonly wholeText: { readonly text: string; readonly bytes: number } | null
}

/** Fills one object of the example from one object of the context: the whole payload, or an item of a list. */
interface Scope {
  readonly matches: ReadonlyMap<ExampleField, ContextValue>
  readonly position: Position
}

function fillLevel(
  schema: JsonSchema,
  context: ContextObject,
  position: Position,
  known?: FieldMatches,
): Record<string, unknown> {
  const { fill, path } = position
  const level = fill.example.level(schema)
  const { values, ambiguous, related } = known ?? matchFields(level, context, fill.example.isIdentifier)
  for (const { name, field } of related) {
    const names = `${JSON.stringify(name.slice(0, 50))} may be meant, or not`
    fill.report.unconverted.add([...path, ...field.path], names)
  }
  for (const { name, fields } of ambiguous) {
    const names = fields.slice(0, 3).map((field) => field.path.join('.'))
    fill.report.unconverted.add(path, `${JSON.stringify(name.slice(0, 50))} can be ${names.join(' or ')}`)
  }
  return fillObject({ matches: values, position }, level.object)
}

function fillObject(scope: Scope, object: ExampleObject): Record<string, unknown> {
  const { fill } = scope.position
  fill.addValue(2)
  const entries: [string, unknown][] = []
  for (const field of selectFields(scope, object)) {
    fill.addBytes(field.nameBytes + (entries.length === 0 ? 1 : 2))
    entries.push([field.name, field.object ? fillObject(scope, field.object) : fillField(scope, field)])
  }
  return Object.fromEntries(entries)
}

/** The required fields, and the optional ones that the context names, in the order of the example. */
function selectFields({ matches }: Scope, { fields, required, hasOptional }: ExampleObject): readonly ExampleField[] {
  if (!hasOptional) return fields
  return matches.size === 0 ? required : fields.filter((field) => field.isRequired || matches.has(field))
}

function fillField(scope: Scope, field: ExampleField): unknown {
  const { path: levelPath, fill, wholeText } = scope.position
  const path = [...levelPath, ...field.path]
  const found = scope.matches.get(field)
  const currency = findCurrencyCode(field, found, fill)
  if (currency !== undefined) {
    if ('error' in currency) {
      fill.report.unconverted.add(path, currency.error)
      return addEmptyValue(field.schema, fill)
    }
    fill.report.named.add(path, found === undefined || found === '' ? 'from the amounts' : undefined)
    fill.addValue(countJsonBytes(currency.value))
    return currency.value
  }
  if (found !== undefined && found !== null && found !== '' && !isEmptyFor(field.schema, found)) {
    const mark = fill.mark()
    const placeholder = findPlaceholder(field, found)
    const converted = placeholder ?? convert(field.schema, found, { ...scope.position, path })
    if ('value' in converted) {
      fill.report.named.add(path)
      return converted.value
    }
    fill.rollBack(mark)
    fill.report.unconverted.add(path, converted.error)
    return addEmptyValue(field.schema, fill)
  }
  if (found === '' && levelPath.length > 0 && needsValue(field.schema)) {
    fill.report.unconverted.add(path, 'it is blank')
    return addEmptyValue(field.schema, fill)
  }
  if (wholeText && found === undefined && field.isText) {
    fill.report.wholeContext.add(path)
    fill.addValue(wholeText.bytes)
    return wholeText.text
  }
  fill.report.empty.add(path)
  return addEmptyValue(field.schema, fill)
}

const PLACEHOLDER =
  /^[(<[]?(?:t\.?b\.?[acd]\.?|to be (?:determined|announced|confirmed|defined|decided)|unknown|not (?:known|yet known|available|sure|specified|given|provided)|see (?:attachment|attached|above|below|pdf)|as (?:before|above|usual)|same as (?:above|before)|unbekannt|noch (?:offen|unklar|nicht bekannt)|wird nachgereicht|folgt|siehe (?:anhang|oben|unten)|wie (?:oben|gehabt|immer)|未定|不明|後日連絡|\?+)[)>\]]?[.!]?$/iu

/** Fields for which such a word is a value: "Status: unknown". */
const STATES = /(?:^| )(?:status|state|type|category|note|description|result|reason|title|subject)(?: |$)/

/** Fields of one value. */
const SINGLE = /(?:^| )(?:id|sku|reference|status|priority|currency|name|email|phone|date|country|city|zip)(?: |$)/

/** A text that gives no value, or several, for a field of one: "tbd", "12 and 13", "chair or stool". */
function findPlaceholder({ lastWords, isText, schema }: ExampleField, value: ContextValue): Conversion | undefined {
  const types = listTypes(schema).map((type) => type['type'])
  if (Array.isArray(value) && value.length > 1 && !types.includes('array') && SINGLE.test(lastWords)) {
    return { error: 'a list has more than one value' }
  }
  if (typeof value !== 'string' || isText || value.length > 80) return undefined
  const text = value.trim()
  if (PLACEHOLDER.test(text) && !STATES.test(lastWords)) return { error: `${describeValue(value)} is no value` }
  const isChoice = /(?:^| )(?:id|sku|product|colou?r|size|variant|priority)(?: |$)/.test(lastWords) && CHOICE.test(text)
  const isPostalCodeToo = /(?:^| )city(?: |$)/.test(lastWords) && /^(?:[A-Z]{1,2}-?)?\d{4,6}\s+\p{L}/u.test(text)
  const isChange =
    /(?:^| )(?:id|sku|product|colou?r|size|priority|status|phone|address|street|city)(?: |$)/.test(lastWords) &&
    CHANGE.test(text)
  const isSeveral = /(?:^| )id(?: |$)/.test(lastWords) && /\d\S*\s+(?:and|und|&|と)\s+\S*\d/u.test(text)
  return isChoice || isChange || isSeveral || isPostalCodeToo
    ? { error: `${describeValue(value)} has more than one value` }
    : undefined
}

/** "red -> blue", "blue (was red)" */
const CHANGE =
  /\S\s*(?:-+>|=>|→|⇒)\s*\S|[(,（]\s?(?:was|were|formerly|previously|not|instead of|vorher|bisher|früher|statt|nicht|war|以前|変更前)[\s:：]|~~/iu

const CHOICE = /^\S+(?: \S+){0,2} (?:or|oder) \S+(?: \S+){0,2}$|または|もしくは/iu

/**
 * The code for a field that has such a code in the example: of "EUR", "€" or "Euro", or of the amounts if the context does
 * not name it. Undefined if the field is another one, or the context has no currency.
 */
function findCurrencyCode(
  field: ExampleField,
  found: ContextValue | undefined,
  fill: FillState,
): Conversion | undefined {
  if ((found !== undefined && typeof found !== 'string') || !isCurrencyField(field, fill)) return undefined
  if (found === undefined || isAbsent(found)) {
    if (!fill.hasCurrency) return undefined
    const error = 'the amounts have no currency, or several, with a single code'
    return fill.currency === undefined ? { error } : { value: fill.currency }
  }
  const code = toCurrencyCode(found)
  if (code === undefined) return { error: `${describeValue(found)} is not one currency` }
  const isOther = fill.currency !== undefined && fill.currency !== code
  return isOther ? { error: `${describeValue(found)} is not the currency of the amounts` } : { value: code }
}

/** Whether the example has the code of a currency there. */
function isCurrencyField({ lastWords, schema }: ExampleField, { example }: FillState): boolean {
  const texts = example.samples(schema)?.texts ?? []
  return /(?:^| )currency(?: |$)/.test(lastWords) && texts.length > 0 && texts.every((text) => /^[A-Z]{3}$/.test(text))
}

/** Whether a blank cell of a table is no value of the field: only a text can be empty. */
function needsValue(schema: JsonSchema): boolean {
  const types = listTypes(schema).map((type) => type['type'])
  return types.length > 0 && !types.includes('string') && !types.includes('null')
}

/** Whether the text says that there is no value: "Due date: n/a". For yes or no, "none" may be no. */
function isEmptyFor(schema: JsonSchema, value: ContextValue): boolean {
  const isBoolean = listTypes(schema).some((type) => type['type'] === 'boolean')
  return isAbsent(value) && !(isBoolean && 'value' in toBoolean(value))
}

function addEmptyValue(schema: JsonSchema, fill: FillState): unknown {
  const { json, values } = fill.example.emptyValue(schema)
  fill.addValue(Buffer.byteLength(json), values)
  return JSON.parse(json)
}

/** On an error, what was added to the position's FillState has to be rolled back. */
function convert(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const types = listTypes(schema)
  if (value instanceof RepeatedValue) {
    const isList = types.length === 0 || types.some((type) => type['type'] === 'array')
    return isList ? convert(schema, [...value.values], position) : convertRepeated(schema, value, position)
  }
  if (types.length === 0) return addJson(value, position)
  const sameType = types.find((type) => hasType(value, type))
  let error: string | undefined
  // Each type once: trying the same one twice at every level of nested lists doubled the time with each level.
  for (const type of sameType ? [sameType, ...types.filter((other) => other !== sameType)] : types) {
    const mark = position.fill.mark()
    const converted = convertTo(type, value, position, schema)
    if ('value' in converted) return converted
    position.fill.rollBack(mark)
    error ??= converted.error
  }
  return { error: error ?? 'does not fit' }
}

/** Converts each value of a name that occurs more than once: they must be equal. */
function convertRepeated(schema: JsonSchema, { values }: RepeatedValue, position: Position): Conversion {
  let first: { json: string; conversion: Conversion } | undefined
  for (const value of values) {
    const mark = position.fill.mark()
    const conversion = convert(schema, value, position)
    if ('error' in conversion) return conversion
    const json = JSON.stringify(conversion.value)
    if (first) position.fill.rollBack(mark)
    first ??= { json, conversion }
    if (first.json !== json)
      return { error: `the context has different values: ${describeValue(new RepeatedValue(values))}` }
  }
  return first?.conversion ?? { error: 'there is no value' }
}

function convertTo(type: JsonSchema, value: ContextValue, position: Position, schema: JsonSchema): Conversion {
  const { fill, path } = position
  switch (type['type']) {
    case 'string':
      return addPlain(toTextLike(value, fill.example.textKind(schema)), position)
    case 'number': {
      const numbers = fill.example.samples(schema)?.numbers ?? []
      const isFraction = numbers.length > 0 && numbers.every((number) => number > 0 && number < 1)
      const words = toWords(path.at(-1) ?? '')
      const isCents = /(?:^| )(?:cent|minor)(?: |$)/.test(words)
      const names = words.split(' ')
      const units = names.flatMap((word) => unitOf(word) ?? [])
      return addPlain(toNumber(value, { decimal: fill.decimal, isFraction, isCents, units, names }), position)
    }
    case 'boolean':
      return addPlain(toBoolean(value), position)
    case 'array':
      return toList((type['items'] as JsonSchema | undefined) ?? {}, value, position)
    case 'object':
      return fillItem(type, value, position)
    default:
      return addPlain(value === null ? { value } : { error: `${describeValue(value)} is not null` }, position)
  }
}

/** Counts an attempt to convert a value to a string, number, boolean or null, and the bytes of its result. */
function addPlain(conversion: Conversion, { fill }: Position): Conversion {
  fill.addValue('value' in conversion ? countJsonBytes(conversion.value) : 0)
  return conversion
}

/** Takes the value as it is, where the example allows any value or any field. */
function addJson(value: ContextValue, { fill, path }: Position): Conversion {
  const conversion = toJson(value, path.length, () => fill.addValue(0))
  if ('value' in conversion) fill.addBytes(Buffer.byteLength(JSON.stringify(conversion.value)))
  return conversion
}

/** The items of a list, the parts of `a, b` or `a; b`, or the value as the only item. */
function toList(itemSchema: JsonSchema, value: ContextValue, position: Position): Conversion {
  const { fill } = position
  const isOfNumbers = itemSchema['type'] === 'number' && typeof value === 'string'
  if (isOfNumbers && !/[;\s]/u.test(value) && /^\d+,\d+$/.test(value)) {
    return { error: `${describeValue(value)} is one number, or two` }
  }
  if (itemSchema['type'] === 'string' && typeof value === 'string' && isUnclearList(value)) {
    return { error: `${describeValue(value)} is one item, or several` }
  }
  // "1,5, 2,5" has commas of two kinds.
  const decimals = isOfNumbers && /\d,\d/.test(value) && /,\s/.test(value) ? value.split(/,\s+|;/u) : undefined
  const lineItems = decimals ? undefined : readLineItems(itemSchema, value, position)
  const items =
    lineItems ??
    decimals ??
    (Array.isArray(value) ? value : typeof value === 'string' ? fill.splitItems(value) : [value])
  const converted: unknown[] = []
  fill.addValue(2)
  for (const [index, item] of items.entries()) {
    if (index > 0) fill.addBytes(1)
    const result = convert(itemSchema, item, { fill, path: [...position.path, String(index)], wholeText: null })
    if ('error' in result) return result
    converted.push(result.value)
  }
  return { value: converted }
}

/** The items of a list in words: lines, or parts between commas, such as "2 x chairs". Undefined unless all are such. */
function readLineItems(itemSchema: JsonSchema, value: ContextValue, { fill }: Position): ContextObject[] | undefined {
  const schema = listTypes(itemSchema).find((type) => type['type'] === 'object')
  if (!schema || (typeof value !== 'string' && !Array.isArray(value))) return undefined
  const { object } = fill.example.level(schema)
  const readAll = (texts: readonly ContextValue[]): ContextObject[] | undefined => {
    const items = texts.map((text) => (typeof text === 'string' ? readLineItem(text, object) : undefined))
    return items.length > 0 && items.every((item) => item !== undefined) ? items : undefined
  }
  if (typeof value !== 'string') return readAll(value)
  const lines = value.split('\n').filter((line) => line.trim() !== '')
  const parts = fill.splitItems(value)
  return lines.length === 1 && parts.length > 1 ? readAll(parts) : readAll(lines)
}

function fillItem(schema: JsonSchema, value: ContextValue, position: Position): Conversion {
  if (!isContextObject(value)) return addPlain({ error: `${describeValue(value)} is not an object` }, position)
  if (position.fill.example.level(schema).object.fields.length === 0) return addJson(value, position)
  return { value: fillLevel(schema, value, { ...position, wholeText: null }) }
}

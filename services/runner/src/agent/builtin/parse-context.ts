import {
  type ContextObject,
  type ContextValue,
  isContextObject,
  isObjectList,
  type KnownNames,
  parseStructure,
  type ReadContext,
  RepeatedValue,
  toObject,
} from './context-value.ts'
import { toWords } from './name-words.ts'
import { findRepeatedName } from './repeated-name.ts'
import { readLines } from './read-lines.ts'
import { findRetraction } from './unread-text.ts'

const NO_NAMES: KnownNames = {
  isField: () => false,
  isSection: () => false,
  isList: () => false,
  isItemField: () => false,
  itemNameField: () => undefined,
}

/** The names and values of a context, for rules: the values of a repeated name are a list. */
export function parseContext(context: string): ContextObject {
  return listRepeated(readContext(context, NO_NAMES).values) as ContextObject
}

/**
 * Reads the names and values of a context (services/runner/README.md, "What the built-in agent understands"): JSON as a
 * whole, in a code fence or between lines; otherwise lines and tables. Any other text has no names.
 */
export function readContext(context: string, known: KnownNames): ReadContext {
  return withProblem(readNames(context, known), findRetraction(context))
}

function readNames(context: string, known: KnownNames): ReadContext {
  const whole = parseStructure(context.trim())
  if (whole !== undefined)
    return withProblem(readJson([openForms(openEnvelope(whole, known), known)]), repeatedNameProblem(context))
  const fenced = [...context.matchAll(FENCED)].flatMap(([, text = '']) => {
    const structure = parseStructure(text.trim())
    return structure === undefined ? [] : [{ structure, text }]
  })
  if (fenced.length > 0) {
    const json = readJson(fenced.map(({ structure }) => structure))
    const repeated = fenced.map(({ text }) => repeatedNameProblem(text)).find((problem) => problem !== undefined)
    return withLines(withProblem(json, repeated), context.replaceAll(FENCED, '\n'), known)
  }
  const begin = context.search(/(?<=^|\n)[ \t]*[[{]/u)
  const end = Math.max(context.lastIndexOf('}'), context.lastIndexOf(']')) + 1
  const embedded = begin === -1 ? undefined : parseStructure(context.slice(begin, end).trim())
  if (embedded !== undefined && (isContextObject(embedded) || isObjectList(embedded))) {
    const json = withProblem(readJson([embedded]), repeatedNameProblem(context.slice(begin, end)))
    return withLines(json, `${context.slice(0, begin)}\n${context.slice(end)}`, known)
  }
  return readLines(context, known)
}

const FENCED = /^[ \t>]*(?:```|~~~)[^\n]*\n([^]*?)\n[ \t>]*(?:```|~~~)[ \t]*$/gmu

function withProblem(read: ReadContext, problem: string | undefined): ReadContext {
  return { ...read, problem: read.problem ?? problem }
}

function repeatedNameProblem(json: string): string | undefined {
  const name = findRepeatedName(json)
  return name === undefined ? undefined : `the JSON has the name ${JSON.stringify(name.slice(0, 50))} twice`
}

/** Adds the lines beside JSON: their values must not contradict it, and their text must not correct it. */
function withLines(json: ReadContext, text: string, known: KnownNames): ReadContext {
  const lines = readLines(text, known)
  const names = new Map(Object.keys(json.values).map((name) => [toWords(name), name]))
  const named = Object.entries(lines.values).flatMap(([name, value]): [string, ContextValue][] => {
    const words = toWords(name)
    // "Order no." of a line and `order_id` of the JSON have to be equal.
    return known.isField(words) ? [[names.get(words) ?? name, value]] : []
  })
  const values = toObject([...Object.entries(json.values), ...named])
  return { values, lists: json.lists, problem: json.problem ?? lines.problem }
}

/** The name of the object that a webhook or an API wraps its data in. */
const ENVELOPE = /^(?:data|payload|body|object|record|resource)$/i
const ENVELOPES_MAX = 3

function isJsonText(name: string, value: ContextValue, known: KnownNames): boolean {
  if (typeof value !== 'string' || !/^(?:message|data|payload|body)$/i.test(name) || known.isField(toWords(name)))
    return false
  const parsed = parseStructure(value.trim())
  return parsed !== undefined && isContextObject(parsed)
}

/** Takes the data out of `{"event": …, "data": {…}}`, unless the example has such a field. Names within go before those beside. */
function openEnvelope(value: ContextValue, known: KnownNames, depth = 0): ContextValue {
  if (!isContextObject(value) || depth === ENVELOPES_MAX) return value
  const text = Object.entries(value).find(([name, inner]) => isJsonText(name, inner, known))
  // {"Type": "Notification", "Message": "{…}"}
  if (text)
    return openEnvelope(
      { ...value, data: parseStructure((text[1] as string).trim()) ?? null, [text[0]]: '' },
      known,
      depth + 1,
    )
  const [only, ...more] = Object.entries(value)
  // {"orders": [{…}]}
  if (only && more.length === 0 && isObjectList(only[1]) && only[1].length === 1) {
    return known.isSection(toWords(only[0])) ? value : openEnvelope(only[1][0] ?? null, known, depth + 1)
  }
  const objects = Object.entries(value).filter(([, inner]) => isContextObject(inner))
  const [name = '', inner] = objects[0] ?? []
  const words = toWords(name)
  if (objects.length !== 1 || !ENVELOPE.test(name) || known.isField(words) || known.isSection(words)) return value
  const opened = openEnvelope(inner as ContextObject, known, depth + 1) as ContextObject
  const within = new Set(Object.keys(opened).map((each) => toWords(each)))
  const beside = Object.entries(value).filter(([each]) => each !== name && !within.has(toWords(each)))
  return toObject([...beside, ...Object.entries(opened)])
}

/** The names of a form's fields and of their values, as webhooks of forms send them: [{"label": "Name", "value": "Ada"}]. */
const FORM_NAMES = ['label', 'name', 'key', 'field', 'question', 'title']
const FORM_VALUES = ['value', 'answer', 'values', 'text']

/** Turns lists of names and values into the object that they are; lists of objects of the example stay. */
function openForms(value: ContextValue, known: KnownNames, depth = 0): ContextValue {
  if (!isContextObject(value) || depth === ENVELOPES_MAX) return value
  const entries = Object.entries(value).map(([name, inner]): [string, ContextValue] => {
    if (!isObjectList(inner) || known.isList(toWords(name))) return [name, openForms(inner, known, depth + 1)]
    return [name, toForm(inner, known) ?? inner]
  })
  return toObject(entries)
}

function toForm(list: readonly ContextObject[], known: KnownNames): ContextObject | undefined {
  const nameOf = FORM_NAMES.find((name) => {
    const names = list.flatMap((field) => (typeof field[name] === 'string' ? [field[name]] : []))
    return (
      names.length === list.length && names.filter((each) => known.isField(toWords(each))).length * 2 >= list.length
    )
  })
  const valueOf = FORM_VALUES.find((name) => list.every((field) => Object.hasOwn(field, name)))
  if (nameOf === undefined || valueOf === undefined) return undefined
  return toObject(list.map((field) => [field[nameOf] as string, field[valueOf] ?? null]))
}

function readJson(values: readonly ContextValue[]): ReadContext {
  const objects = values.flatMap((value) => (isContextObject(value) ? [value] : []))
  const lists = values.filter(isObjectList)
  const [single, ...others] = lists
  // A list of one object is that object.
  if (single?.length === 1 && others.length === 0 && objects.length === 0) {
    return { values: single[0] ?? {}, lists: [single], problem: undefined }
  }
  return { values: toObject(objects.flatMap((object) => Object.entries(object))), lists, problem: undefined }
}

function listRepeated(value: ContextValue): ContextValue {
  if (value instanceof RepeatedValue) return value.values.map(listRepeated)
  if (!isContextObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, listRepeated(item)]))
}

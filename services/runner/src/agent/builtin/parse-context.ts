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
import { readLines } from './read-lines.ts'

const NO_NAMES: KnownNames = { isField: () => false, isSection: () => false, isItemField: () => false }

/** The names and values of a context, for rules: the values of a repeated name are a list. */
export function parseContext(context: string): ContextObject {
  return listRepeated(readContext(context, NO_NAMES).values) as ContextObject
}

/**
 * Reads the names and values of a context (services/runner/README.md, "What the built-in agent understands"): JSON as a
 * whole, in a code fence or between lines; otherwise lines and tables. Any other text has no names.
 */
export function readContext(context: string, known: KnownNames): ReadContext {
  const whole = parseStructure(context.trim())
  if (whole !== undefined) return readJson([whole])
  const blocks = [...context.matchAll(/^[ \t>]*(?:```|~~~)[^\n]*\n([^]*?)\n[ \t>]*(?:```|~~~)[ \t]*$/gmu)]
  const fenced = blocks.flatMap(([, text = '']) => parseStructure(text.trim()) ?? [])
  if (fenced.length > 0) return readJson(fenced)
  const begin = context.search(/(?<=^|\n)[ \t]*[[{]/u)
  const end = Math.max(context.lastIndexOf('}'), context.lastIndexOf(']')) + 1
  const embedded = begin === -1 ? undefined : parseStructure(context.slice(begin, end).trim())
  if (embedded !== undefined && (isContextObject(embedded) || isObjectList(embedded))) return readJson([embedded])
  return readLines(context, known)
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

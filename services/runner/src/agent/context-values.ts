import { type ContextObject, type ContextValue, NumberText } from '@workflow-service/rules/convert-value'

/**
 * JSON.parse keeps the last value of a name that an object has twice: then the text has the name more often than the
 * result.
 */
export function findRepeatedName(text: string, parsed: ContextValue): string | undefined {
  const counts = new Map<string, number>()
  const add = (name: string, count: number): void => void counts.set(name, (counts.get(name) ?? 0) + count)
  for (const name of listNames(text)) add(name, 1)
  countNames(parsed, (name) => add(name, -1))
  return [...counts].find(([, count]) => count > 0)?.[0]
}

const COLON = /\s*:/y

/** The names in a text that is JSON. A pattern of whole strings would overflow the stack at one of megabytes. */
function* listNames(text: string): Generator<string> {
  for (let begin = text.indexOf('"'), end; begin !== -1; begin = text.indexOf('"', end + 1)) {
    end = begin + 1
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1
    COLON.lastIndex = end + 1
    if (COLON.test(text)) yield JSON.parse(text.slice(begin, end + 1)) as string
  }
}

function countNames(value: ContextValue, add: (name: string) => void): void {
  if (Array.isArray(value)) for (const item of value) countNames(item, add)
  else if (isContextObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      add(name)
      countNames(item, add)
    }
  }
}

export function isContextObject(value: ContextValue | undefined): value is ContextObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText)
}

/** Whether objects and lists are nested in more than so many levels. */
export function isDeeperThan(value: ContextValue, levels: number): boolean {
  if (!Array.isArray(value) && !isContextObject(value)) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}

/** V8 quotes ten characters before and after a wrong token instead of its position. */
const QUOTED = /^Unexpected token '.+?', (\.{3})?"(.*)"(?:\.{3})? is not valid JSON$/s

/** Finds where the text stops being JSON from the browser's message. */
function positionOf(text: string, message: string): number | undefined {
  const position = /at position (\d+)/.exec(message)?.[1]
  if (position) return Number(position)
  const [, isCut, quoted] = QUOTED.exec(message) ?? []
  return quoted === undefined ? undefined : text.indexOf(quoted) + (isCut ? 10 : 0)
}

/** Parses JSON. `error` says what is wrong and on which line. */
export function parseJson(text: string): { value?: unknown; error?: string } {
  if (text.trim() === '') return { error: 'Enter JSON.' }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const position = positionOf(text, message)
    const line = position === undefined ? /line (\d+)/.exec(message)?.[1] : text.slice(0, position).split('\n').length
    const what = message
      .replace(/^JSON\.parse: /, '')
      .replace(/ in JSON at position .*| at line \d+ .*/s, '')
      .replace(/, (?:\.{3})?".*is not valid JSON$/s, '')
    return { error: line ? `Line ${line}: ${what}.` : `This is not valid JSON: ${what}.` }
  }
}

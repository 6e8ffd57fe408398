/** V8 quotes ten characters before and after a wrong token instead of its position. */
const QUOTED = /^Unexpected token '.+?', (\.{3})?"(.*)"(?:\.{3})? is not valid JSON$/s

/** Finds the line where the text stops being JSON from the browser's message. */
function lineOf(text: string, message: string): string | number | undefined {
  const line = /line (\d+)/.exec(message)?.[1]
  const [, isCut, quoted] = QUOTED.exec(message) ?? []
  if (line || quoted === undefined) return line
  return text.slice(0, text.indexOf(quoted) + (isCut ? 10 : 0)).split('\n').length
}

/** Parses JSON. `error` says what is wrong and on which line. */
export function parseJson(text: string): { value?: unknown; error?: string } {
  if (text.trim() === '') return { error: 'Enter JSON.' }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const line = lineOf(text, message)
    const what = message
      .replace(/^JSON\.parse: /, '')
      .replace(/ in JSON at position .*| at line \d+ .*/s, '')
      .replace(/, (?:\.{3})?".*is not valid JSON$/s, '')
    return { error: line ? `Line ${line}: ${what}.` : `This is not valid JSON: ${what}.` }
  }
}

/** Parses JSON. `error` says what is wrong, in the words of the browser. */
export function parseJson(text: string): { value?: unknown; error?: string } {
  if (text.trim() === '') return { error: 'Enter JSON.' }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { error: `${(error as Error).message}.` }
  }
}

import { findInexactNumberErrors } from '@workflow-service/contract/find-inexact-number'

/** Parses JSON. `error` says what is wrong, in the words of the browser. */
export function parseJson(text: string): { value?: unknown; error?: string } {
  if (text.trim() === '') return { error: 'Enter JSON.' }
  try {
    const value = JSON.parse(text) as unknown
    const [inexact] = findInexactNumberErrors(text, '')
    return inexact ? { error: `The JSON ${inexact.message}.` } : { value }
  } catch (error) {
    return { error: `${(error as Error).message}.` }
  }
}

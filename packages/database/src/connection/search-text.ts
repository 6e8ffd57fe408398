import { foldCase } from './fold-case.ts'

// A noncharacter. `foldSearch` removes it from texts and searches, so no search matches across it.
const SEPARATOR = '\uffff'
const REPLACEMENT = '\ufffd'

/**
 * The value of `workflows.search_text`: name and description, case folded, with a separator that no search contains.
 * Code that writes a workflow's name or description writes this too.
 */
export function workflowSearchText(name: string, description: string): string {
  return `${foldSearch(name)}${SEPARATOR}${foldSearch(description)}`
}

/** Folds the case of a search, to compare it with `workflows.search_text`. */
export function foldSearch(search: string): string {
  return foldCase(search).replaceAll(SEPARATOR, REPLACEMENT)
}

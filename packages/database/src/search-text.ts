import { foldCase } from './fold-case.ts'

// A noncharacter, which folding a text or a search never yields: no search matches across it.
const SEPARATOR = '\uffff'
const REPLACEMENT = '\ufffd'

/**
 * What `workflows.search_text` holds: name and description, case folded, so apart that no search reaches from one into
 * the other. Everything that writes a workflow's name or description writes this too.
 */
export function workflowSearchText(name: string, description: string): string {
  return `${foldSearch(name)}${SEPARATOR}${foldSearch(description)}`
}

/** A search as it is compared with `workflows.search_text`. */
export function foldSearch(search: string): string {
  return foldCase(search).replaceAll(SEPARATOR, REPLACEMENT)
}

import { isStorableText } from '@workflow-service/contract'

/** Replaces what PostgreSQL cannot store as text: NUL and unpaired surrogates. */
export function toStorableText(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll('\u0000', '\uFFFD')
}

import { hash } from 'node:crypto'

/**
 * Returns the version of values that a person edits: the same values have the same version. Computed from exactly what
 * a save overwrites, on a row locked by its transaction, so that nothing is overwritten unseen. 22 characters of
 * base64url.
 */
export function versionOf(values: unknown): string {
  return hash('sha256', JSON.stringify(values), 'base64url').slice(0, 22)
}

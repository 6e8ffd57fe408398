const encoder = new TextEncoder()
/** ASCII without quotes, backslashes and control characters. */
const PLAIN = /^[ !#-[\]-~]*$/

/**
 * Counts the bytes of a string, number, boolean or null as JSON in UTF-8, quotes and escapes included. Runs in browsers
 * too.
 */
export function countJsonBytes(value: unknown): number {
  if (typeof value !== 'string') return String(value).length
  // Most texts need no escape, and encoding each takes more than the rest of a check.
  if (PLAIN.test(value)) return value.length + 2
  return encoder.encode(JSON.stringify(value)).length
}

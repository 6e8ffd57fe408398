/** Counts the bytes of a string, number, boolean or null as JSON in UTF-8, quotes and escapes included. */
export function countJsonBytes(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(JSON.stringify(value))
  return String(value).length
}

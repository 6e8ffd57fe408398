const encoder = new TextEncoder()

/** Counts the bytes of a string, number, boolean or null as JSON in UTF-8, quotes and escapes included. Runs in browsers too. */
export function countJsonBytes(value: unknown): number {
  if (typeof value === 'string') return encoder.encode(JSON.stringify(value)).length
  return String(value).length
}

/** The text of the number as it stands in the source, which JSON.parse tells its reviver since ES2025. */
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/**
 * The first number of a JSON text that JavaScript cannot hold as written: an id of 20 digits, 1e400. Sent on, it would be
 * another number. Undefined when there is none. The text must be valid JSON.
 */
export function findInexactNumber(text: string): string | undefined {
  // Fifteen digits without an exponent are always exact.
  if (!/\d{16}|\d[eE]|\d\.\d/.test(text)) return undefined
  let found: string | undefined
  const look: Reviver = (_key, value, { source }) => {
    if (found === undefined && typeof value === 'number' && source !== undefined && !isExact(source, value)) {
      found = source.slice(0, 40)
    }
    return undefined
  }
  JSON.parse(text, look as Parameters<typeof JSON.parse>[1])
  return found
}

function isExact(source: string, value: number): boolean {
  return Number.isFinite(value) && canonical(source) === canonical(String(value))
}

/** Significant digits and power of ten, so that 1.50, 15e-1 and 1.5 are the same. */
function canonical(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/**
 * Whether a number that was written like this is the same after JSON.parse. Whole numbers beyond the safe integers
 * never are: some APIs parse the arguments before they reach this service, so that the digits that were written are
 * unknown.
 */
export function isExactNumber(source: string): boolean {
  const value = Number(source)
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return false
  return toDigits(source) === toDigits(String(value))
}

/** The significant digits and the exponent of a decimal number. */
function toDigits(decimal: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/u.exec(decimal) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/u, '')
  const significant = digits.replace(/0+$/u, '')
  if (significant === '') return '0'
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

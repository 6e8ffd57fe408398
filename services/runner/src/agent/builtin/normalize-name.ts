/** Only so many characters of a name count: names are short, and normalizing takes quadratic time in the worst case. */
export const COMPARED_LENGTH = 200

/** Normalizes a name, so that `customerName`, `customer_name`, `Customer name` and `CUSTOMER-NAME` are equal. */
export function normalizeName(fullName: string): string {
  const name = fullName.slice(0, COMPARED_LENGTH)
  // Most names are ASCII; the Unicode path takes ten times as long.
  const folded = /^[ -~]*$/.test(name)
    ? name.toLowerCase().replace(/[^a-z0-9]+/g, '')
    : name
        .normalize('NFKC')
        .toLowerCase()
        .replace(/[^\p{L}\p{M}\p{N}]+/gu, '')
  return folded === '' ? name : folded
}

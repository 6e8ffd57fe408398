/** Longer names are compared as they are: normalizing takes quadratic time in the worst case. */
const FOLDED_LENGTH = 200

/**
 * Folds case, separators, and the accents of Latin letters, so that `order_id`, `orderId` and `Order ID` are equal, and
 * `Número` and `numero` too. Marks of other scripts are not accents: が is another letter than か. Only what is between
 * words or at the end separates: `$id` is another name than `id`, and Q1.2 than Q12.
 */
export function foldName(name: string): string {
  if (name.length > FOLDED_LENGTH) return name
  // Most names are ASCII, and need no normalization.
  const folded = /^[ -~]*$/.test(name)
    ? name
        .toLowerCase()
        .replace(/(?<=\d)[^a-z0-9]+(?=\d)/g, '_')
        .replace(/(?!^[#$@])(?:(?<!\d)[^a-z0-9]+|[^a-z0-9]+(?!\d))/g, '')
    : name
        .normalize('NFKD')
        .replace(/(\p{Script=Latin})\p{M}+/gu, '$1')
        .normalize('NFC')
        .replace(/(?<=\p{N})[^\p{L}\p{M}\p{N}]+(?=\p{N})/gu, '_')
        .replace(/(?!^[#$@])(?:(?<!\p{N})[^\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+(?!\p{N}))/gu, '')
        .toLowerCase()
        // The lower case of a Σ depends on what follows it.
        .replaceAll('ς', 'σ')
  return folded === '' ? name : folded
}

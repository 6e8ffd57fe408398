const DOTLESS_I = 'ı'
const FINAL_SIGMA = /ς/g

/**
 * The text with case folded away: Unicode's full case folding (CaseFolding.txt, statuses C and F), the same on every
 * machine. It works code point by code point, so folding never hides a substring. `Straße` and `STRASSE` are equal,
 * `İ` is `i` with U+0307, `ı` stays itself. Nothing is normalized: `é` and `e` with U+0301 stay different.
 */
export function foldCase(text: string): string {
  return text.split(DOTLESS_I).map(foldPart).join(DOTLESS_I)
}

// Lower, upper, lower reaches every folding: ẞ only becomes ss through ß, and ſ only becomes s through S. Two exceptions:
// ı, whose upper case is I, and Σ, which String.toLowerCase writes as ς at the end of a word.
function foldPart(text: string): string {
  return text.toLowerCase().toUpperCase().toLowerCase().replace(FINAL_SIGMA, 'σ')
}

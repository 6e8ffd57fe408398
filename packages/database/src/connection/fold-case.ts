const DOTLESS_I = 'ı'
const FINAL_SIGMA = /ς/g

/**
 * Folds the case of a text: Unicode's full case folding (CaseFolding.txt, statuses C and F), the same on every machine.
 * It works code point by code point, so a substring of the text is also one of the folded text. `Straße` and `STRASSE`
 * become equal, `İ` becomes `i` with U+0307, `ı` stays. Nothing is normalized: `é` and `e` with U+0301 stay different.
 */
export function foldCase(text: string): string {
  return text.split(DOTLESS_I).map(foldPart).join(DOTLESS_I)
}

// Lower, upper, lower covers every folding: ẞ becomes ss only through ß, and ſ becomes s only through S. Two
// exceptions: the upper case of ı is I, and String.toLowerCase writes Σ as ς at the end of a word.
function foldPart(text: string): string {
  return text.toLowerCase().toUpperCase().toLowerCase().replace(FINAL_SIGMA, 'σ')
}

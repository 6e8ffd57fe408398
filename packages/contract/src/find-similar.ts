/** Edits that are still a typing mistake. */
const MAX_EDITS = 2

/** Names that are compared: an organization can have thousands of webhook sources. */
const MAX_NAMES = 1_000

/** The name that is most similar to the typed one, ignoring case; undefined if none is similar. */
export function findSimilar(typed: string, names: readonly string[]): string | undefined {
  const text = typed.toLowerCase()
  const maxEdits = Math.min(MAX_EDITS, Math.floor(text.length / 3))
  const candidates = names.slice(0, MAX_NAMES).flatMap((name) => {
    const edits = countEdits(text, name.toLowerCase(), maxEdits)
    return edits <= maxEdits ? [{ name, edits }] : []
  })
  return candidates.toSorted((a, b) => a.edits - b.edits)[0]?.name
}

/**
 * The Levenshtein distance, with two exchanged neighbors as one edit; any number above `max` if it is larger than that.
 */
function countEdits(left: string, right: string, max: number): number {
  if (Math.abs(left.length - right.length) > max) return max + 1
  let twoAbove: number[] = []
  let above = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row += 1) {
    const distances = [row]
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (above[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1)
      const isExchanged = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      const exchanged = isExchanged ? (twoAbove[column - 2] ?? max) + 1 : max + 1
      distances.push(Math.min(replaced, exchanged, (above[column] ?? 0) + 1, (distances[column - 1] ?? 0) + 1))
    }
    twoAbove = above
    above = distances
  }
  return above[right.length] ?? 0
}

/** The least similarity of two names that may mean the same. */
const MIN_SIMILARITY = 0.4

/**
 * The name that has most pairs of letters in common with the path or its last part (Dice's coefficient), such as "Order
 * value" for `value`; null if none is similar. Unlike `findSimilar`, it finds more than mistakes in typing: a person
 * decides.
 */
export function findClosestName(path: string, names: readonly string[]): string | null {
  const wanted = partsOf(path)
  const [first] = names
    .slice(0, MAX_NAMES)
    .map((name) => ({
      name,
      similarity: Math.max(...partsOf(name).flatMap((part) => wanted.map((own) => compare(own, part)))),
    }))
    .filter(({ similarity }) => similarity >= MIN_SIMILARITY)
    .toSorted((a, b) => b.similarity - a.similarity)
  return first?.name ?? null
}

/** The pairs of letters of the whole path and of its last name. */
function partsOf(path: string): string[][] {
  return [path, path.slice(path.lastIndexOf('.') + 1)].map((name) => {
    const letters = name
      .slice(0, 100)
      .normalize('NFKD')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, '')
    return Array.from({ length: Math.max(letters.length - 1, 1) }, (_, index) => letters.slice(index, index + 2))
  })
}

function compare(left: readonly string[], right: readonly string[]): number {
  return (2 * left.filter((pair) => right.includes(pair)).length) / (left.length + right.length)
}

/** Edits that are still a typing mistake. */
const MAX_EDITS = 2

/** Names that are compared, and their characters: an organization can have thousands of webhook sources. */
const MAX_NAMES = 1_000
const MAX_CHARACTERS = 40_000

/** The name that is most similar to the typed one, ignoring case; undefined if none is similar. */
export function findSimilar(typed: string, names: readonly string[]): string | undefined {
  const text = typed.toLowerCase()
  const maxEdits = Math.min(MAX_EDITS, Math.floor(text.length / 3))
  let left = MAX_CHARACTERS
  const candidates = names.slice(0, MAX_NAMES).flatMap((name) => {
    left -= name.length
    if (left < 0) return []
    const edits = countEdits(text, name.toLowerCase(), maxEdits)
    return edits <= maxEdits ? [{ name, edits }] : []
  })
  return candidates.toSorted((a, b) => a.edits - b.edits)[0]?.name
}

/**
 * The Levenshtein distance, with two exchanged neighbors as one edit; any number above `max` if it is larger than
 * that. Of each row, only the columns that are at most `max` from the diagonal count, and most names end in the first
 * rows.
 */
function countEdits(left: string, right: string, max: number): number {
  const far = max + 1
  if (Math.abs(left.length - right.length) > max) return far
  // With one more at each end, which is too far. Codes beyond the ends of a text are NaN, which is equal to none.
  const width = 2 * max + 3
  let twoAbove: number[] = Array.from({ length: width }, () => far)
  let above = twoAbove.map((_, index) => (index <= max ? far : Math.min(index - max - 1, far)))
  let nearestAbove = 0
  for (let row = 1; row <= left.length; row += 1) {
    const distances = [far]
    let nearest = far
    const [own, ownBefore] = [left.charCodeAt(row - 1), left.charCodeAt(row - 2)]
    for (let index = 1; index < width - 1; index += 1) {
      const column = row + index - max - 1
      const [other, otherBefore] = [right.charCodeAt(column - 1), right.charCodeAt(column - 2)]
      const replaced = above[index]! + (own === other ? 0 : 1)
      const exchanged = own === otherBefore && ownBefore === other ? twoAbove[index]! + 1 : far
      const edited = Math.min(replaced, exchanged, above[index + 1]! + 1, distances[index - 1]! + 1)
      const distance = column > 0 && column <= right.length ? edited : column === 0 ? row : far
      distances.push(distance)
      nearest = Math.min(nearest, distance)
    }
    if (nearest > max && nearestAbove >= max) return far
    distances.push(far)
    twoAbove = above
    above = distances
    nearestAbove = nearest
  }
  return above[right.length - left.length + max + 1]!
}

/** The least similarity of two names that may mean the same. */
const MIN_SIMILARITY = 0.4

/**
 * Returns a function that finds the name with most pairs of letters in common with a path or its last part (Dice's
 * coefficient), such as "Order value" for `value`; null if none is similar. Unlike `findSimilar`, it finds more than
 * mistakes in typing: a person decides.
 */
export function closestNameFinder(names: readonly string[]): (path: string) => string | null {
  const candidates = names.map((name) => ({ name, parts: partsOf(name) }))
  return (path) => {
    const wanted = partsOf(path)
    let closest: { name: string; similarity: number } | undefined
    for (const { name, parts } of candidates) {
      for (const part of parts) {
        for (const own of wanted) {
          const similarity = compare(own, part)
          if (similarity >= MIN_SIMILARITY && similarity > (closest?.similarity ?? 0)) closest = { name, similarity }
        }
      }
    }
    return closest?.name ?? null
  }
}

/** The pairs of letters of the whole path and of its last name, as sorted numbers. */
function partsOf(path: string): Uint32Array[] {
  return Array.from(new Set([path, path.slice(path.lastIndexOf('.') + 1)]), (name) => {
    const letters = name
      .slice(0, 100)
      .normalize('NFKD')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}]/gu, '')
    const codeAt = (index: number) => letters.charCodeAt(index) || 0
    const length = Math.max(letters.length - 1, 1)
    return Uint32Array.from({ length }, (_, index) => codeAt(index) * 65_536 + codeAt(index + 1)).toSorted()
  })
}

function compare(left: Uint32Array, right: Uint32Array): number {
  let [shared, at] = [0, 0]
  for (const pair of left) {
    while (at < right.length && right[at]! < pair) at += 1
    if (right[at] === pair) shared += 1
  }
  return (2 * shared) / (left.length + right.length)
}

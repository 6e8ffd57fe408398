/** Says whether objects and lists nest in more than `levels` levels. Not recursive, so any depth is safe. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level = [value].filter(isNesting)
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > levels) return true
    level = level.flatMap((item) => Object.values(item).filter(isNesting))
  }
  return false
}

function isNesting(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

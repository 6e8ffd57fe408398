/** Finds a name that an object in valid JSON has twice, of which JSON.parse keeps the last value. Takes linear time. */
export function findRepeatedName(json: string): string | undefined {
  /** The names of each open object; undefined for a list. */
  const open: (Set<string> | undefined)[] = []
  let isName = false
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],]/gsu)) {
    const names = open.at(-1)
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(undefined)
    else if (token === '}' || token === ']') open.pop()
    else if (token !== ',' && isName && names) {
      const name = parseName(token)
      if (names.has(name)) return name
      names.add(name)
    }
    isName = token === '{' || (token === ',' && names !== undefined)
  }
  return undefined
}

function parseName(token: string): string {
  try {
    return JSON.parse(token) as string
  } catch {
    // Not JSON: its text is its own name.
    return token
  }
}

import { globSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { compile } from '@workflow-service/contract'
import { CaseFile, type EvaluationCase, Matcher } from './case-schema.ts'

/** Wrong usage, or a case file that cannot be used; the message says what to change. */
export class UsageError extends Error {}

const check = compile(CaseFile)
const checkMatcher = compile(Matcher)

/**
 * Reads the cases of all files that the pattern matches, in the order of the files' names.
 * @throws UsageError for a file that does not follow the schema, an id that is there twice, an unknown source, and an
 *   unknown matcher.
 */
export function readCases(pattern: string): EvaluationCase[] {
  const files = globSync(relative('', pattern)).toSorted()
  if (files.length === 0) throw new UsageError(`No case file matches ${pattern}`)
  const ids = new Set<string>()
  return files.flatMap((file) => {
    const content = parseFile(file)
    if (!check(content)) {
      const errors = (check.errors ?? []).map(({ instancePath, message = '' }) => `${instancePath} ${message}`)
      throw new UsageError(`${file} is not a valid case file:\n${[...new Set(errors)].join('\n')}`)
    }
    for (const { id, sources, expect, injection } of content) {
      if (ids.has(id)) throw new UsageError(`${file}: the id ${id} is there twice`)
      ids.add(id)
      const named = [...expect.deliveries.map(({ source }) => source), ...(injection?.sources ?? [])]
      const unknown = named.find((name) => !sources.some((source) => source.name === name))
      if (unknown !== undefined) throw new UsageError(`${file}: ${id} has no source ${unknown}`)
      const place = findBadMatcher(
        expect.deliveries.map(({ payload }) => payload),
        `${id}: deliveries`,
      )
      if (place !== undefined) throw new UsageError(`${file}: ${place} is not a matcher`)
    }
    return content
  })
}

function parseFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`)
  }
}

/** Returns the path of an object with names that begin with `$` that is not a matcher (`score-run.ts`). */
function findBadMatcher(expected: unknown, path: string): string | undefined {
  if (typeof expected !== 'object' || expected === null) return undefined
  const entries = Object.entries(expected)
  if (entries.some(([name]) => name.startsWith('$'))) return checkMatcher(expected) ? undefined : path
  return entries.map(([name, value]) => findBadMatcher(value, `${path}.${name}`)).find((bad) => bad !== undefined)
}

export function toText(text: string | readonly string[]): string {
  return typeof text === 'string' ? text : text.join('\n')
}
